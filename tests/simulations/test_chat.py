"""Chats with agents: with the engine of simulations, charged like them, and with tools that run only when asked to."""

import json
from uuid import UUID

import pytest
from pydantic import JsonValue
from switchboard.foundation.web.errors import ProviderFailed, RateLimited
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import ModelUsage, ProviderError
from switchboard.resources.agents import colleagues
from switchboard.resources.agents.models import Agent
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.simulations.chat import CHAT_LIMIT, AgentChat, ChatMessage, ChatReply
from switchboard.resources.simulations.text_mode import TextConversation
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.receiver import Receiver

PROMPT = (
    'When the caller says "order": call find_order(number="17")\n'
    'When the caller says "who am I": say "You are {{name}}."\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)


async def ask(runtime: Runtime, caller: Caller, agent_id: str, text: str, **fields: object) -> ChatReply:
    async with runtime.database.write(caller.organization_id) as session:
        agent = await get_row(session, Agent, UUID(agent_id))
    message = ChatMessage.model_validate({"entries": [], "text": text, **fields})
    return await runtime.call(AgentChat).answer(agent, message)


async def create_agent(caller: Caller, **fields: JsonValue) -> str:
    body = {"name": "Agent", "system_prompt": PROMPT, "greeting_message": "Hello {{name}}.", **fields}
    response = await caller.post("/v1/agents", body)
    assert response.status == 201, response.body
    return str(response.json["id"])


async def test_a_chat_goes_on_from_what_was_said(runtime: Runtime, caller: Caller) -> None:
    agent_id = await create_agent(caller)
    first = await ask(runtime, caller, agent_id, "Who am I?", variables={"name": "Ada"})
    assert first.entries == [
        {"role": "agent", "content": "Hello Ada."},
        {"role": "user", "content": "Who am I?"},
        {"role": "agent", "content": "You are Ada."},
    ]
    last = await ask(runtime, caller, agent_id, "Goodbye", entries=first.entries)
    assert ([entry["role"] for entry in last.entries], last.ended_by) == (["user", "tool", "agent"], "agent")
    again = await ask(runtime, caller, agent_id, "Who am I?", entries=[*first.entries, *last.entries])
    assert again.entries[-1]["content"] == "You are ."


@pytest.mark.local_receivers
async def test_tools_run_only_when_asked_to(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    receiver.bodies["/orders"] = b'{"state": "sent"}'
    tool: JsonValue = {"name": "find_order", "description": "Find an order.", "url": f"{receiver.url}/orders"}
    agent_id = await create_agent(caller, tools=[tool])
    harmless = await ask(runtime, caller, agent_id, "Where is my order?")
    called = next(json.loads(entry["content"]) for entry in harmless.entries if entry["role"] == "tool")
    assert (called["result"], receiver.received) == ({"done": True}, [])
    real = await ask(runtime, caller, agent_id, "Where is my order?", runs_tools=True)
    called = next(json.loads(entry["content"]) for entry in real.entries if entry["role"] == "tool")
    assert called == {"tool": "find_order", "arguments": {"number": "17"}, "result": {"state": "sent"}}
    assert json.loads(receiver.received[0].body)["call_id"] is None


@pytest.mark.local_receivers
@pytest.mark.parametrize("origin", ["words", "keypad"])
async def test_a_tool_runs_once_its_variables_are_known(
    runtime: Runtime, caller: Caller, receiver: Receiver, origin: str
) -> None:
    tool: JsonValue = {
        "name": "find_order",
        "description": "Find an order.",
        "url": f"{receiver.url}/orders",
        "needs": [{"name": "pin", "least_origin": "keypad"}],
    }
    learned: JsonValue = {"name": "state", "source": "tool", "tool": "find_order", "path": "order.state"}
    receiver.bodies["/orders"] = b'{"order": {"state": "sent"}}'
    agent_id = await create_agent(caller, tools=[tool], variables=[learned])
    known = {"pin": {"value": "4711", "origin": origin}}
    reply = await ask(runtime, caller, agent_id, "Where is my order?", runs_tools=True, learned=known)
    called = next(json.loads(entry["content"]) for entry in reply.entries if entry["role"] == "tool")
    if origin == "words":
        error = "find_order needs pin first, from the keypad or a better source: what the caller says does not count"
        assert (called["result"], receiver.received) == ({"error": error}, [])
        return
    assert json.loads(receiver.received[0].body)["variables"]["pin"] == {"value": "4711", "origin": "keypad"}
    assert {"role": "system", "content": "state is sent (tool)."} in reply.entries
    assert reply.learned == {**known, "state": {"value": "sent", "origin": "tool"}}


async def test_agents_hand_a_chat_over_and_back(runtime: Runtime, caller: Caller) -> None:
    billing = (
        'When the caller says "invoice": say "Billing. Which one?"\n'
        'When the caller says "pay": say "It is paid." and call hand_back(result="paid")'
    )
    billing_id = await create_agent(caller, name="Billing", system_prompt=billing)
    handoff: JsonValue = {"agent_id": billing_id, "description": "Invoices.", "mode": "call_and_return"}
    reception = (
        'When the caller says "invoice": say "One moment." and call hand_off_to_billing\n'
        'When the caller says "pay": say "Anything else?"'
    )
    agent_id = await create_agent(caller, system_prompt=reception, greeting_message="", handoffs=[handoff])
    first = await ask(runtime, caller, agent_id, "My invoice")
    said = [(entry["role"], entry["content"]) for entry in first.entries if entry["role"] != "tool"]
    assert said == [
        ("user", "My invoice"),
        ("agent", "One moment."),
        ("system", "Agent handed the conversation over to Billing."),
        ("agent", "Billing. Which one?"),
    ]
    last = await ask(runtime, caller, agent_id, "I pay the first", entries=first.entries, parts=first.parts)
    assert [entry["content"] for entry in last.entries if entry["role"] != "tool"][1:] == [
        "It is paid.",
        "Billing handed the conversation back to Agent: paid",
        "Anything else?",
    ]
    assert [part["agent_id"] for part in last.parts] == [agent_id, billing_id, agent_id]


async def test_passages_that_were_found_are_shown(runtime: Runtime, caller: Caller) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"]
    content = "The dough of our bread rests for thirty six hours before it is baked."
    await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "bread.txt", "content": content})
    agent_id = await create_agent(caller, knowledge_base_ids=[base])
    assert (await ask(runtime, caller, agent_id, "How long does the bread rest?")).passages == [content]


async def test_a_chat_is_charged_and_limited(runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_id = await create_agent(caller)
    answer = TextConversation.answer

    async def use(self: TextConversation, line: str, said: str) -> str:
        self._played.models.append(ModelUsage("", input_tokens=1, output_tokens=1, cost=0.25))
        return await answer(self, line, said)

    monkeypatch.setattr(TextConversation, "answer", use)
    await ask(runtime, caller, agent_id, "Goodbye")
    async with runtime.database.write(caller.organization_id) as session:
        entries = (await session.exec(session.select(LedgerEntry))).all()
    assert [(entry.kind, float(entry.amount)) for entry in entries] == [("simulation", -0.25)]

    async def ask_too_often() -> None:
        for _ in range(2 * CHAT_LIMIT.burst):
            await ask(runtime, caller, agent_id, "Goodbye")

    with pytest.raises(RateLimited):
        await ask_too_often()


async def test_a_provider_that_fails_is_reported(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id = await create_agent(caller)
    monkeypatch.setattr(colleagues, "open_agent_model", _fail)
    with pytest.raises(ProviderFailed, match="no model today"):
        await ask(runtime, caller, agent_id, "Hello")


def _fail(*_: object) -> object:
    raise ProviderError("no model today")
