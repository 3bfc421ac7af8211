"""Simulations over HTTP: created, run by a worker, reported."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from sqlmodel import col, select
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.models import Event
from switchboard.resources.simulations import jobs
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at, text_at
from tests.fixtures.receiver import Receiver

PROMPT = (
    'When the caller says "opening hours": say "We are open from seven to six."\n'
    'When the caller says "a human": say "One moment." and call transfer_call(to_number="+15550100002")\n'
    'When the caller says "send it": say "I am texting you." and call send_sms(body="Seven to six")\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)
Completed = Callable[..., Awaitable[Json]]
SAID = {"type": "said", "text": "OPEN from * six"}


async def create_agent(caller: Caller, **fields: object) -> str:
    response = await caller.post(
        "/v1/agents", {"name": "Agent", "system_prompt": PROMPT, "greeting_message": "Hello, the bakery.", **fields}
    )
    return str(response.json["id"])


async def create_simulation(caller: Caller, agent_id: str, **fields: object) -> str:
    response = await caller.post(f"/v1/agents/{agent_id}/simulations", {"name": "Test", "assertions": [SAID], **fields})
    assert (response.status, response.json.get("status")) == (201, "queued"), response.body
    return str(response.json["id"])


async def wait_for_simulation(caller: Caller, agent_id: str, simulation_id: str) -> Json:
    """Wait until a worker has completed a simulation, and return it."""
    path = f"/v1/agents/{agent_id}/simulations/{simulation_id}"
    completed = await eventually(lambda: caller.get(path), lambda response: response.json["completed_at"] is not None)
    return completed.json


@pytest.fixture
def run_simulation(runtime: Runtime, caller: Caller) -> Completed:
    """Create a simulation and run it without a worker process."""

    async def complete(agent_id: str, **fields: object) -> Json:
        simulation_id = await create_simulation(caller, agent_id, **fields)
        ids = {"organization_id": caller.organization_id, "simulation_id": UUID(simulation_id)}
        await runtime.call(jobs.run_simulation, **ids)
        return (await caller.get(f"/v1/agents/{agent_id}/simulations/{simulation_id}")).json

    return complete


async def test_a_simulation_runs_its_conversation_and_checks_each_assertion(
    run_simulation: Completed, caller: Caller
) -> None:
    assertions = [
        SAID,
        {"type": "never_said", "text": "closed"},
        {"type": "tool_called", "tool": "send_sms", "arguments": {"body": "Seven to six"}},
        {"type": "ended_by", "by": "agent"},
    ]
    lines = ["What are your opening hours?", "Please send it", "Goodbye", "Never spoken"]
    simulation = await run_simulation(await create_agent(caller), lines=lines, assertions=assertions)
    assert (simulation["status"], simulation["score"], simulation["turns"], simulation["ended_by"]) == (
        "passed",
        1,
        3,
        "agent",
    )
    agent_answers = ["We are open from seven to six.", "I am texting you.", "Goodbye."]
    assert [entry["content"] for entry in objects_at(simulation, "transcript") if entry["role"] != "tool"] == [
        "Hello, the bakery.", *(part for pair in zip(lines, agent_answers, strict=False) for part in pair),
    ]  # fmt: skip
    assert (await caller.get("/v1/sms/conversations")).json["total"] == 0


@pytest.mark.parametrize(
    ("assertion", "explanation"),
    [
        ({"type": "said", "text": "six * seven"}, "The agent did not say it."),
        ({"type": "never_said", "text": "seven to six"}, "The agent said: We are open from seven to six."),
        ({"type": "tool_called", "tool": "end_call"}, "The agent called transfer_call."),
        (
            {"type": "tool_called", "tool": "transfer_call", "arguments": {"to_number": "+1"}},
            '[{"to_number": "+15550100002"}]',
        ),
        ({"type": "ended_by", "by": "caller"}, "It was ended by: transfer."),
    ],
)
async def test_a_failed_assertion_states_its_reason(
    run_simulation: Completed, caller: Caller, assertion: Json, explanation: str
) -> None:
    lines = ["What are your opening hours?", "I want a human"]
    simulation = await run_simulation(
        await create_agent(caller), lines=lines, assertions=[SAID, {**assertion, "name": "Mine"}]
    )
    assert (simulation["status"], simulation["score"]) == ("failed", 0.5)
    first, second = simulation["criteria"]  # type: ignore[misc,str-unpack]
    assert (at(first, "passed"), at(second, "passed"), at(second, "name")) == (True, False, "Mine")
    assert explanation in text_at(second, "explanation")


@pytest.mark.local_receivers
async def test_declared_tools_are_recorded_and_not_called(
    run_simulation: Completed, caller: Caller, receiver: Receiver
) -> None:
    tool = {
        "name": "find_order",
        "description": "Find an order.",
        "url": f"{receiver.url}/orders",
        "parameters": {"type": "object"},
    }
    prompt = 'When the caller says "my order": say "One moment." and call find_order(number="17")'
    agent_id = await create_agent(caller, system_prompt=prompt, tools=[tool])
    called = {"type": "tool_called", "tool": "find_order", "arguments": {"number": "17"}}
    simulation = await run_simulation(agent_id, lines=["Where is my order?"], assertions=[called])
    assert simulation["status"] == "passed", simulation
    assert {
        "role": "tool",
        "content": '{"tool": "find_order", "arguments": {"number": "17"}, "result": {"done": true}}',
    } in simulation["transcript"]  # type: ignore[operator]
    assert receiver.received == []


async def test_a_caller_without_lines_hangs_up_and_one_with_lines_is_stopped_at_the_limit(
    run_simulation: Completed, caller: Caller
) -> None:
    agent_id = await create_agent(caller)
    assert (await run_simulation(agent_id, lines=["Hello"]))["ended_by"] == "caller"
    limited = await run_simulation(agent_id, lines=["Hello", "Hello", "Hello"], max_turns=2)
    assert (limited["ended_by"], limited["turns"]) == ("limit", 2)


async def test_a_model_plays_the_caller_from_persona_and_goal(run_simulation: Completed, caller: Caller) -> None:
    persona = (
        'When the agent says "the bakery": say "What are your opening hours?"\n'
        'When the agent says "seven to six": say "Goodbye." and call end_call'
    )
    simulation = await run_simulation(await create_agent(caller), persona=persona, goal="To know the opening hours.")
    assert (simulation["status"], simulation["turns"], simulation["ended_by"]) == ("passed", 2, "agent")


async def test_an_unusable_judgment_is_an_error_and_not_a_failure(run_simulation: Completed, caller: Caller) -> None:
    simulation = await run_simulation(
        await create_agent(caller), lines=["Hello"], assertions=[{"type": "judge", "question": "Was it kind?"}]
    )
    assert (simulation["status"], simulation["score"], simulation["criteria"]) == ("error", None, [])
    assert "Was it kind?" in str(simulation["error_message"])


async def test_a_worker_runs_a_simulation(caller: Caller, running_worker: None) -> None:
    agent_id = await create_agent(caller)
    simulation_id = await create_simulation(caller, agent_id, lines=["What are your opening hours?"])
    assert (await wait_for_simulation(caller, agent_id, simulation_id))["status"] == "passed"


async def test_a_simulation_searches_real_knowledge_bases(caller: Caller, running_worker: None) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    document = {"filename": "a.txt", "content": "The parking garage is behind the house."}
    await caller.post(f"/v1/knowledge-bases/{base}/documents", document)
    path = f"/v1/knowledge-bases/{base}/documents"
    await eventually(lambda: caller.get(path), lambda response: at(response.json, "items", 0, "status") == "ready")
    agent_id = await create_agent(caller, knowledge_base_ids=[base])
    assertion = {"type": "said", "text": "behind the house"}
    simulation = await wait_for_simulation(
        caller,
        agent_id,
        await create_simulation(caller, agent_id, lines=["Is there a parking garage?"], assertions=[assertion]),
    )
    assert simulation["status"] == "passed", simulation["transcript"]


async def test_the_result_is_published(run_simulation: Completed, caller: Caller, runtime: Runtime) -> None:
    simulation = await run_simulation(await create_agent(caller), lines=["What are your opening hours?"])
    async with runtime.database.write(caller.organization_id) as session:
        event = (await session.exec(select(Event).where(col(Event.name) == "simulation.completed"))).one()
        await open_content(session, event)
    same = (
        "agent_id",
        "name",
        "status",
        "score",
        "criteria",
        "turns",
        "duration_seconds",
        "error_message",
        "started_at",
        "completed_at",
    )
    assert event.data.value == {"simulation_id": simulation["id"], **{name: simulation[name] for name in same}}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"assertions": []}, "assertions"),
        ({"assertions": [SAID, {"type": "sung"}]}, "assertions.1"),
        ({"assertions": [SAID, {"type": "said"}]}, "assertions.1.said.text"),
        ({"assertions": [{"type": "ended_by", "by": "fate"}]}, "assertions.0.ended_by.by"),
        ({"assertions": [{"type": "latency_under_ms", "milliseconds": 100}]}, "assertions.0.type"),
        (
            {"mode": "audio", "assertions": [{"type": "tool_called", "tool": "a", "arguments": {"b": 1}}]},
            "assertions.0.arguments",
        ),
        ({"lines": []}, "lines"),
        ({"mode": "audio", "lines": [], "goal": "To sing"}, "lines"),
        ({"max_turns": 0}, "max_turns"),
    ],
)
async def test_invalid_simulations_are_refused_by_field(caller: Caller, fields: Json, field: str) -> None:
    body = {"name": "Test", "lines": ["Hello"], "assertions": [SAID], **fields}
    refused = await caller.post(f"/v1/agents/{await create_agent(caller)}/simulations", body)
    assert refused.status == 422
    assert at(refused.json, "errors", 0, "field") == field


async def test_simulations_are_listed_under_their_own_agent(run_simulation: Completed, caller: Caller) -> None:
    one, other = await create_agent(caller), await create_agent(caller)
    simulation = await run_simulation(one, lines=["Hello"])
    response = (await caller.get(f"/v1/agents/{one}/simulations")).json
    assert ([item["id"] for item in objects_at(response, "items")], at(response, "total")) == (
        [at(simulation, "id")],
        1,
    )
    assert (await caller.get(f"/v1/agents/{other}/simulations")).json["items"] == []
    for path in (
        f"{other}/simulations/{simulation['id']}",
        f"{UNKNOWN_ID}/simulations",
        f"{one}/simulations/{UNKNOWN_ID}",
    ):
        assert (await caller.get(f"/v1/agents/{path}")).status == 404


async def test_audio_requires_a_phone_number(caller: Caller) -> None:
    body = {"name": "Test", "mode": "audio", "lines": ["Hello"], "assertions": [SAID]}
    refused = await caller.post(f"/v1/agents/{await create_agent(caller)}/simulations", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")


async def test_an_audio_simulation_calls_over_the_loopback_carrier(live: LivePlatform) -> None:
    assertions = [
        {"type": "said", "text": "goodbye"},
        {"type": "tool_called", "tool": "end_call"},
        {"type": "ended_by", "by": "agent"},
        {"type": "latency_under_ms", "milliseconds": 60_000},
    ]
    simulation_id = await create_simulation(
        live.caller, live.agent_id, mode="audio", lines=["Goodbye"], assertions=assertions
    )
    simulation = await wait_for_simulation(live.caller, live.agent_id, simulation_id)
    assert simulation["status"] == "passed", simulation
    assert (await live.caller.get(f"/v1/calls/{simulation['call_id']}")).json["ended_reason"] == "agent_hung_up"
