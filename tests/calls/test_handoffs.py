"""Hand-offs between agents in spoken calls, and their settings."""

from uuid import UUID

import pytest
from pydantic import JsonValue
from sqlmodel import col, select
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.models import Event
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy, Prices

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.json_access import Json, at, objects_at, text_at

RECEPTION = (
    'When the caller says "a question about my invoice": say "I connect you." and call hand_off_to_billing\n'
    'When the caller says "please pay it now": say "You are back at the reception."\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)
BILLING = (
    'When the caller says "a question about my invoice": say "This is billing. Which one?"\n'
    'When the caller says "please pay it now": say "It is paid." and call hand_back(result="paid")'
)


async def create_agent(caller: Caller, name: str, **fields: JsonValue) -> str:
    made = await caller.post("/v1/agents", {"name": name, **fields})
    assert made.status == 201, made.json
    return text_at(made.json, "id")


async def test_a_caller_goes_from_reception_to_billing_and_back(live: LivePlatform) -> None:
    caller = live.caller
    async with live.runtime.database.system() as session:
        organization = await session.get_one(Organization, caller.organization_id)
        organization.policy = Policy(prices=Prices(call_minute=1, transcription_minute=1, speech_1000_characters=1))
    billing = await create_agent(caller, "Billing", system_prompt=BILLING, stt_language="en-GB")
    handoff: Json = {"agent_id": billing, "description": "Invoices.", "mode": "call_and_return"}
    settings: Json = {"system_prompt": RECEPTION, "handoffs": [handoff], "greeting_message": "Hello {{contact_name}}."}
    assert (await caller.send("PUT", f"/v1/agents/{live.agent_id}", settings)).status == 200
    assert (await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada"})).status == 201
    await live.simulate_call("a question about my invoice", "please pay it now", "goodbye")
    call_id = at((await caller.get("/v1/calls")).json, "items", 0, "id")
    call = await live.wait_for_end(call_id)
    lines = objects_at((await caller.get(f"/v1/calls/{call_id}/transcript")).json, "items")
    assert [(line["agent_id"], line["content"]) for line in lines if line["role"] == "agent"] == [
        (live.agent_id, "Hello Ada."),
        (live.agent_id, "I connect you."),
        (billing, "This is billing. Which one?"),
        (billing, "It is paid."),
        (live.agent_id, "You are back at the reception."),
        (live.agent_id, "Goodbye."),
    ]
    assert [line["content"] for line in lines if line["role"] == "system"] == [
        "Agent handed the conversation over to Billing.",
        "Billing handed the conversation back to Agent: paid",
    ]
    assert (call["agent_id"], call["ended_reason"]) == (live.agent_id, "agent_hung_up")
    expected = [(live.agent_id, billing, "call_and_return"), (billing, live.agent_id, "return")]
    handoffs = objects_at(call, "handoffs")
    assert [(one["from_agent_id"], one["to_agent_id"], one["mode"]) for one in handoffs] == expected
    assert [one["to_agent_version"] for one in handoffs] == [1, 2]
    costs = at(call, "agent_costs")
    assert isinstance(costs, dict)
    assert set(costs) == {live.agent_id, billing}
    for part in ("speech_to_text", "text_to_speech"):
        spent = sum(float(str(at(costs, agent, part))) for agent in costs)
        assert spent == pytest.approx(float(str(at(call, "costs", part))), abs=1e-5)
        assert all(float(str(at(costs, agent, part))) > 0 for agent in costs)
    async with live.runtime.database.read(caller.organization_id) as session:
        events = (await session.exec(select(Event).where(col(Event.name) == "call.handed_off"))).all()
        await open_content(session, *events)
    sent = sorted((event.data.value for event in events), key=lambda data: int(str(data["timestamp_ms"])))
    assert [(data["from_agent_id"], data["to_agent_id"], data["mode"]) for data in sent] == expected
    assert {UUID(str(data["call_id"])) for data in sent} == {UUID(str(call_id))}


async def test_a_payment_by_keypad_leaves_nothing_with_the_next_agent(live: LivePlatform) -> None:
    caller = live.caller
    payments = await create_agent(
        caller,
        "Payments",
        system_prompt='Otherwise: call key_in_card and call hand_back(result="paid")',
        variables=[{"name": "card", "source": "keypad", "prompt": "Enter the number of your card."}],
        stt_language="en-GB",
    )
    pressed: Json = {"field": "keys", "operator": "eq", "value": "2"}
    handoff: Json = {"agent_id": payments, "mode": "call_and_return", "context": "nothing", "conditions": [pressed]}
    reception = (
        'Otherwise: say "Anything else?"\n'
        'When the caller says "goodbye": say "Goodbye {{card}}{{card:keypad}}." and call end_call'
    )
    settings: Json = {"system_prompt": reception, "handoffs": [handoff], "greeting_message": "Press two to pay."}
    assert (await caller.send("PUT", f"/v1/agents/{live.agent_id}", settings)).status == 200
    await live.simulate_call("[2#]", "[4111111111111111#]", "goodbye")
    call_id = at((await caller.get("/v1/calls")).json, "items", 0, "id")
    call = await live.wait_for_end(call_id)
    modes = [one["mode"] for one in objects_at(call, "handoffs")]
    assert (modes, call["ended_reason"]) == (["call_and_return", "return"], "agent_hung_up")
    assert at(call, "variables", "card", "value") == "[keypad]"
    transcript = (await caller.get(f"/v1/calls/{call_id}/transcript")).body.decode()
    assert "card is [keypad] (keypad)." in transcript
    assert "4111" not in transcript
    assert "Goodbye [keypad][keypad]." in transcript, "not even the prompt of the next agent has it"


async def test_handoffs_are_checked_and_survive_the_deletion_of_their_agent(caller: Caller, stranger: Caller) -> None:
    billing, foreign = await create_agent(caller, "Billing"), await create_agent(stranger, "Theirs")
    good: Json = {"agent_id": billing, "description": "Invoices."}
    reception = await create_agent(caller, "Reception", handoffs=[good])
    shown = (await caller.get(f"/v1/agents/{reception}")).json
    assert at(shown, "handoffs", 0) == {
        **good,
        "conditions": [],
        "mode": "replace",
        "context": "everything",
        "last_turns": 6,
        "greeting": "continue",
    }
    refusals: dict[str, JsonValue] = {
        "handoffs.0.agent_id": [{**good, "agent_id": foreign}],
        "handoffs.1.agent_id": [good, good],
        "handoffs.0.conditions": [{"agent_id": billing}],
        "handoffs.0.conditions.0.field": [{**good, "conditions": [{"field": "result", "operator": "exists"}]}],
        "handoffs.0.conditions.0.value": [{**good, "conditions": [{"field": "keys", "operator": "in", "value": "1"}]}],
        "handoffs.0.mode": [{**good, "mode": "other"}],
    }
    for field, handoffs in refusals.items():
        refused = await caller.send("PUT", f"/v1/agents/{reception}", {"handoffs": handoffs})
        assert (refused.status, field in str(refused.json)) == (422, True), (field, refused.json)
    own = await caller.send("PUT", f"/v1/agents/{reception}", {"handoffs": [{**good, "agent_id": reception}]})
    assert (own.status, "this agent itself" in str(own.json)) == (422, True)
    changes: Json = {"revision": None, "changes": {"handoffs": [{**good, "mode": "call_and_return"}]}}
    draft = (await caller.send("PUT", f"/v1/agents/{reception}/draft", changes)).json
    assert (await caller.send("DELETE", f"/v1/agents/{billing}")).status == 204
    published = await caller.post(f"/v1/agents/{reception}/draft/publish", {"revision": at(draft, "revision")})
    assert (published.status, at(published.json, "handoffs")) == (200, []), published.json
