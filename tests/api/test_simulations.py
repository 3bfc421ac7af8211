"""Simulations over HTTP: created, run by a worker, reported."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from sqlmodel import col, select
from switchboard.foundation.events.models import Event
from switchboard.resources.simulations import runner
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


async def agent(caller: Caller, **fields: object) -> str:
    answer = await caller.post(
        "/v1/agents", {"name": "Agent", "system_prompt": PROMPT, "greeting_message": "Hello, the bakery.", **fields}
    )
    return str(answer.json["id"])


async def made(caller: Caller, agent_id: str, **fields: object) -> str:
    answer = await caller.post(f"/v1/agents/{agent_id}/simulations", {"name": "Test", "assertions": [SAID], **fields})
    assert (answer.status, answer.json.get("status")) == (201, "queued"), answer.body
    return str(answer.json["id"])


async def awaited(caller: Caller, agent_id: str, simulation_id: str) -> Json:
    """Wait until a worker has completed a simulation, and return it."""
    path = f"/v1/agents/{agent_id}/simulations/{simulation_id}"
    answer = await eventually(
        lambda: caller.get(path), lambda found: found.json["completed_at"] is not None, seconds=30
    )
    return answer.json


@pytest.fixture
def completed(runtime: Runtime, caller: Caller) -> Completed:
    """Create a simulation and run it without a worker process."""

    async def complete(agent_id: str, **fields: object) -> Json:
        simulation_id = await made(caller, agent_id, **fields)
        await runner.run_claimed_simulation(runtime, caller.organization_id, UUID(agent_id), UUID(simulation_id))
        return (await caller.get(f"/v1/agents/{agent_id}/simulations/{simulation_id}")).json

    return complete


async def test_a_conversation_is_held_and_each_assertion_looked_at(completed: Completed, caller: Caller) -> None:
    assertions = [
        SAID,
        {"type": "never_said", "text": "closed"},
        {"type": "tool_called", "tool": "send_sms", "arguments": {"body": "Seven to six"}},
        {"type": "ended_by", "by": "agent"},
    ]
    lines = ["What are your opening hours?", "Please send it", "Goodbye", "Never spoken"]
    found = await completed(await agent(caller), lines=lines, assertions=assertions)
    assert (found["status"], found["score"], found["turns"], found["ended_by"]) == ("passed", 1, 3, "agent")
    answers = ["We are open from seven to six.", "I am texting you.", "Goodbye."]
    assert [entry["content"] for entry in objects_at(found, "transcript") if entry["role"] != "tool"] == [
        "Hello, the bakery.", *(part for pair in zip(lines, answers, strict=False) for part in pair),
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
async def test_what_does_not_hold_fails_and_says_why(
    completed: Completed, caller: Caller, assertion: Json, explanation: str
) -> None:
    lines = ["What are your opening hours?", "I want a human"]
    found = await completed(await agent(caller), lines=lines, assertions=[SAID, {**assertion, "name": "Mine"}])
    assert (found["status"], found["score"]) == ("failed", 0.5)
    first, second = found["criteria"]  # type: ignore[misc,str-unpack]
    assert (at(first, "passed"), at(second, "passed"), at(second, "name")) == (True, False, "Mine")
    assert explanation in text_at(second, "explanation")


@pytest.mark.local_receivers
async def test_a_tool_that_the_agent_declares_is_noted_and_asks_nobody(
    completed: Completed, caller: Caller, receiver: Receiver
) -> None:
    tool = {
        "name": "find_order",
        "description": "Find an order.",
        "url": f"{receiver.url}/orders",
        "parameters": {"type": "object"},
    }
    prompt = 'When the caller says "my order": say "One moment." and call find_order(number="17")'
    agent_id = await agent(caller, system_prompt=prompt, tools=[tool])
    called = {"type": "tool_called", "tool": "find_order", "arguments": {"number": "17"}}
    found = await completed(agent_id, lines=["Where is my order?"], assertions=[called])
    assert found["status"] == "passed", found
    assert {
        "role": "tool",
        "content": '{"tool": "find_order", "arguments": {"number": "17"}, "result": {"done": true}}',
    } in found["transcript"]  # type: ignore[operator]
    assert receiver.received == []


async def test_a_caller_who_has_said_everything_hangs_up_and_one_who_has_not_is_stopped(
    completed: Completed, caller: Caller
) -> None:
    agent_id = await agent(caller)
    assert (await completed(agent_id, lines=["Hello"]))["ended_by"] == "caller"
    limited = await completed(agent_id, lines=["Hello", "Hello", "Hello"], max_turns=2)
    assert (limited["ended_by"], limited["turns"]) == ("limit", 2)


async def test_a_model_plays_the_caller_by_persona_and_goal(completed: Completed, caller: Caller) -> None:
    persona = (
        'When the agent says "the bakery": say "What are your opening hours?"\n'
        'When the agent says "seven to six": say "Goodbye." and call end_call'
    )
    found = await completed(await agent(caller), persona=persona, goal="To know the opening hours.")
    assert (found["status"], found["turns"], found["ended_by"]) == ("passed", 2, "agent")


async def test_a_judge_that_cannot_judge_is_an_error_and_no_failure(completed: Completed, caller: Caller) -> None:
    found = await completed(
        await agent(caller), lines=["Hello"], assertions=[{"type": "judge", "question": "Was it kind?"}]
    )
    assert (found["status"], found["score"], found["criteria"]) == ("error", None, [])
    assert "Was it kind?" in str(found["error_message"])


async def test_a_worker_runs_it(caller: Caller, working: None) -> None:
    agent_id = await agent(caller)
    simulation_id = await made(caller, agent_id, lines=["What are your opening hours?"])
    assert (await awaited(caller, agent_id, simulation_id))["status"] == "passed"


async def test_knowledge_is_really_searched(caller: Caller, working: None) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    document = {"filename": "a.txt", "content": "The parking garage is behind the house."}
    await caller.post(f"/v1/knowledge-bases/{base}/documents", document)
    path = f"/v1/knowledge-bases/{base}/documents"
    await eventually(lambda: caller.get(path), lambda listed: at(listed.json, "items", 0, "status") == "ready")
    agent_id = await agent(caller, knowledge_base_ids=[base])
    said = {"type": "said", "text": "behind the house"}
    found = await awaited(
        caller, agent_id, await made(caller, agent_id, lines=["Is there a parking garage?"], assertions=[said])
    )
    assert found["status"] == "passed", found["transcript"]


async def test_the_result_is_told(completed: Completed, caller: Caller, runtime: Runtime) -> None:
    found = await completed(await agent(caller), lines=["What are your opening hours?"])
    async with runtime.database.tenant(caller.organization_id) as session:
        event = (await session.exec(select(Event).where(col(Event.name) == "simulation.completed"))).one()
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
    assert event.data == {"simulation_id": found["id"], **{name: found[name] for name in same}}


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
async def test_what_cannot_be_simulated_is_refused_by_its_place(caller: Caller, fields: Json, field: str) -> None:
    body = {"name": "Test", "lines": ["Hello"], "assertions": [SAID], **fields}
    refused = await caller.post(f"/v1/agents/{await agent(caller)}/simulations", body)
    assert refused.status == 422
    assert at(refused.json, "errors", 0, "field") == field


async def test_simulations_are_listed_under_their_own_agent(completed: Completed, caller: Caller) -> None:
    one, other = await agent(caller), await agent(caller)
    own = await completed(one, lines=["Hello"])
    listed = (await caller.get(f"/v1/agents/{one}/simulations")).json
    assert ([item["id"] for item in objects_at(listed, "items")], at(listed, "total")) == ([at(own, "id")], 1)
    assert (await caller.get(f"/v1/agents/{other}/simulations")).json["items"] == []
    for path in (f"{other}/simulations/{own['id']}", f"{UNKNOWN_ID}/simulations", f"{one}/simulations/{UNKNOWN_ID}"):
        assert (await caller.get(f"/v1/agents/{path}")).status == 404


async def test_audio_needs_a_number(caller: Caller) -> None:
    body = {"name": "Test", "mode": "audio", "lines": ["Hello"], "assertions": [SAID]}
    refused = await caller.post(f"/v1/agents/{await agent(caller)}/simulations", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")


async def test_a_call_is_held_over_the_loopback_carrier(live: LivePlatform) -> None:
    assertions = [
        {"type": "said", "text": "goodbye"},
        {"type": "tool_called", "tool": "end_call"},
        {"type": "ended_by", "by": "agent"},
        {"type": "latency_under_ms", "milliseconds": 60_000},
    ]
    simulation_id = await made(live.caller, live.agent_id, mode="audio", lines=["Goodbye"], assertions=assertions)
    found = await awaited(live.caller, live.agent_id, simulation_id)
    assert found["status"] == "passed", found
    assert (await live.caller.get(f"/v1/calls/{found['call_id']}")).json["ended_reason"] == "agent_hung_up"
