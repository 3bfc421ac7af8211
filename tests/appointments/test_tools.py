"""Agents that find, book, move, and cancel appointments: in a spoken call, in a simulation, and by their tools."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import JsonValue
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.foundation.database import now
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import JsonObject, ToolCall, ToolContext
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools
from switchboard.resources.appointments.spoken_times import describe_moment
from switchboard.resources.simulations.jobs import run_simulation
from switchboard.runtime import Runtime

from tests.api.test_appointments import ALWAYS, FIRST_DAY, build_request, create, create_type, list_free
from tests.carriers.test_scenarios import list_transcript
from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.json_access import Json, at, objects_at, text_at, texts_at

PROMPT = (
    'When the caller says "an appointment": call find_slots(day="tomorrow")\n'
    'When the caller says "the first one": call book_appointment(slot_token="$slots.0.slot_token", name="Ada")\n'
    'When the caller says "move it": call move_appointment(slot_token="$slots.1.slot_token")\n'
    'When the caller says "cancel it": call cancel_appointment\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)
ADA, GRACE = "+15550100001", "+15550100002"
BERLIN = ZoneInfo("Europe/Berlin")
DAY = FIRST_DAY.isoformat()


async def create_agent(caller: Caller, *type_ids: str, **fields: JsonValue) -> str:
    body: Json = {"name": "Agent", "system_prompt": PROMPT, "appointment_type_ids": [*type_ids], **fields}
    return str((await create(caller, "/v1/agents", body))["id"])


async def open_tools(runtime: Runtime, caller: Caller, agent_id: str, number: str = ADA) -> Toolbox:
    """Return the tools of an agent in a conversation of its own with a person."""
    async with runtime.database.write(caller.organization_id) as session:
        agent = await get_row(session, Agent, UUID(agent_id))
    tools: list[Tool] = await runtime.call(AgentTools).build_tools(agent)
    context = ToolContext(caller.organization_id, agent.id, None, number, "+15550100200", person_number=number)
    return Toolbox(tools, context)


async def run(tools: Toolbox, tool: str, /, **arguments: JsonValue) -> JsonObject:
    return await tools.run(ToolCall("1", tool, arguments))


async def list_booked(caller: Caller) -> list[str]:
    """List the beginnings of the appointments."""
    found = (await caller.get("/v1/appointments?status=booked&limit=100")).json
    return sorted(text_at(item, "starts_at") for item in objects_at(found, "items"))


async def test_a_caller_books_moves_and_cancels_an_appointment(live: LivePlatform) -> None:
    caller = live.caller
    type_id = await create_type(caller)
    settings: Json = {"system_prompt": PROMPT, "appointment_type_ids": [type_id], "tools": []}
    assert (await caller.send("PUT", f"/v1/agents/{live.agent_id}", settings)).status == 200
    await live.simulate_call("an appointment", "the first one", "move it", "Goodbye")
    call = at((await caller.get("/v1/calls")).json, "items", 0)
    await live.wait_for_end(at(call, "id"))
    said = " ".join(content for role, content in await list_transcript(live, at(call, "id")) if role == "agent")
    (booked,) = objects_at((await caller.get("/v1/appointments")).json, "items")
    moment = datetime.fromisoformat(text_at(booked, "starts_at"))
    asked_at = datetime.fromisoformat(text_at(booked, "created_at"))
    assert (moment.astimezone(BERLIN).date() - asked_at.astimezone(BERLIN).date()).days == 1
    first, second = (
        describe_moment(moment - timedelta(minutes=minutes), BERLIN, "en", now=now()) for minutes in (30, 0)
    )
    assert f"I can offer {first} or {second}." in said
    assert f"Your appointment is booked: {first}." in said
    assert f"Your appointment is moved: {second}." in said, "the calendar has what was said"
    assert (booked["phone_number"], booked["call_id"]) == (text_at(call, "from_number"), at(call, "id"))
    await live.simulate_call("cancel it", "Goodbye")
    assert await list_booked(caller) == []


async def test_a_simulation_finds_times_and_books_nothing(runtime: Runtime, caller: Caller) -> None:
    agent_id = await create_agent(caller, await create_type(caller))
    body: Json = {
        "name": "Booking",
        "lines": ["an appointment", "the first one"],
        "assertions": [{"type": "said", "text": "Your appointment is booked"}],
    }
    made = await create(caller, f"/v1/agents/{agent_id}/simulations", body)
    ids = {"organization_id": caller.organization_id, "simulation_id": UUID(str(made["id"]))}
    await runtime.call(run_simulation, **ids)
    finished = (await caller.get(f"/v1/agents/{agent_id}/simulations/{made['id']}")).json
    assert finished["status"] == "passed", finished
    assert await list_booked(caller) == []


async def test_only_times_that_were_offered_in_the_conversation_are_booked(runtime: Runtime, caller: Caller) -> None:
    type_id = await create_type(caller)
    agent_id = await create_agent(caller, type_id)
    tools, others = [await open_tools(runtime, caller, agent_id, number) for number in (ADA, GRACE)]
    slots = objects_at(await run(tools, "find_slots", day=DAY), "slots")
    foreign = objects_at(await run(others, "find_slots", day=DAY), "slots")[0]
    platform = (await list_free(caller, type_id, limit=1))[0]
    for token in ("2026-12-01T10:00:00Z", text_at(foreign, "slot_token"), text_at(platform, "slot_token")[:100]):
        refused = await run(tools, "book_appointment", slot_token=token, name="Ada")
        assert "not offered in this conversation" in text_at(refused, "error")
    token = text_at(slots[0], "slot_token")
    assert await run(tools, "book_appointment", slot_token=token, name="Ada") == {
        "booked": True,
        "when": slots[0]["when"],
    }
    again = await run(tools, "book_appointment", slot_token=token, name="Ada")
    assert again["booked"] is True, "a repeated call books nothing else"
    taken = await run(others, "book_appointment", slot_token=text_at(foreign, "slot_token"), name="Grace")
    assert taken["done"] is False
    (next_free, *_) = objects_at(taken, "slots")
    assert next_free["when"] == slots[1]["when"]
    booked = await run(others, "book_appointment", slot_token=text_at(next_free, "slot_token"), name="Grace")
    assert booked == {"booked": True, "when": slots[1]["when"]}
    assert len(await list_booked(caller)) == 2


async def test_nobody_changes_the_appointments_of_others(runtime: Runtime, caller: Caller) -> None:
    type_id = await create_type(caller)
    agent_id = await create_agent(caller, type_id)
    slots = await list_free(caller, type_id, limit=4)
    mine = [await create(caller, "/v1/appointments", build_request(slot)) for slot in slots[:2]]
    hers = await open_tools(runtime, caller, agent_id, GRACE)
    assert "no coming appointment" in text_at(await run(hers, "cancel_appointment"), "error")
    assert "no coming appointment" in text_at(
        await run(hers, "cancel_appointment", appointment=str(mine[0]["id"])[-6:]), "error"
    )
    unknown = await open_tools(runtime, caller, agent_id, "anonymous")
    assert "not known" in text_at(await run(unknown, "cancel_appointment"), "error")
    free = text_at(objects_at(await run(unknown, "find_slots", day=DAY), "slots")[0], "slot_token")
    assert "phone number" in text_at(await run(unknown, "book_appointment", slot_token=free, name="x"), "error")
    tools = await open_tools(runtime, caller, agent_id)
    several = text_at(await run(tools, "cancel_appointment"), "error")
    assert all(str(appointment["id"])[-6:] in several for appointment in mine)
    canceled = await run(tools, "cancel_appointment", appointment=str(mine[0]["id"])[-6:])
    assert canceled["canceled"] is True
    assert await list_booked(caller) == [mine[1]["starts_at"]]
    token = text_at(objects_at(await run(tools, "find_slots", day=DAY), "slots")[1], "slot_token")
    assert (await run(tools, "move_appointment", slot_token=token))["moved"] is True
    assert await list_booked(caller) == [slots[2]["starts_at"]]


async def test_a_person_with_another_number_passes_a_check(runtime: Runtime, caller: Caller) -> None:
    questions: list[JsonValue] = [{"name": "born", "description": "Date of birth", "required": True}]
    type_id = await create_type(caller, fields=questions, check_fields=["born"])
    agent_id = await create_agent(caller, type_id)
    slots = await list_free(caller, type_id, limit=2)
    answers: Json = {"born": "10 December 1815"}
    for slot in slots:
        await create(caller, "/v1/appointments", build_request(slot, fields=answers))
    other = await open_tools(runtime, caller, agent_id, GRACE)
    assert "born (Date of birth)" in text_at(await run(other, "cancel_appointment"), "error"), "the model can ask"
    several = text_at(
        await run(other, "cancel_appointment", phone_number=ADA, answers={"born": "10 DECEMBER, 1815"}), "error"
    )
    assert "reference" in several
    named = several.split(": ", 2)[1]
    right: Json = {"phone_number": ADA, "answers": answers, "appointment": named}
    assert (await run(other, "confirm_appointment", **right))["confirmed"] is True
    assert (await run(other, "cancel_appointment", **right))["canceled"] is True
    assert await list_booked(caller) == [slots[1]["starts_at"]]
    for number, given in ((ADA, "11 December 1815"), (ADA, ""), ("+15550100009", "10 December 1815")):
        refused = await run(other, "cancel_appointment", phone_number=number, answers={"born": given})
        assert "no appointment of this number has these answers" in text_at(refused, "error")
    assert "no more are checked" in text_at(
        await run(other, "cancel_appointment", phone_number=ADA, answers=answers), "error"
    ), "not in this conversation"
    # Nor in many: after five failures the appointment is changed from its own number only.
    for _ in range(3):
        withheld = await open_tools(runtime, caller, agent_id, "anonymous")
        await run(withheld, "cancel_appointment", phone_number=ADA, answers={"born": "1 January 1800"})
    last = await run(withheld, "cancel_appointment", phone_number=ADA, answers=answers)
    assert "no appointment of this number" in text_at(last, "error")
    own = await open_tools(runtime, caller, agent_id, ADA)
    assert (await run(own, "cancel_appointment"))["canceled"] is True


async def test_a_check_asks_what_was_asked_when_the_appointment_was_booked(caller: Caller) -> None:
    body: Json = {"name": "x", "calendar_ids": [UNKNOWN_ID], "hours": ALWAYS, "check_fields": ["born"]}
    for questions in ([], [{"name": "born"}]):
        refused = await caller.post("/v1/appointment-types", {**body, "fields": questions})
        assert (refused.status, [error["field"] for error in objects_at(refused.json, "errors")]) == (
            422,
            ["check_fields.0"],
        )
    path = f"/v1/appointment-types/{await create_type(caller, fields=[{'name': 'born', 'required': True}])}"
    assert (await caller.send("PATCH", path, {"check_fields": ["born"]})).json["check_fields"] == ["born"]
    assert (await caller.send("PATCH", path, {"fields": []})).status == 422


async def test_days_are_counted_by_the_platform(runtime: Runtime, caller: Caller) -> None:
    type_id = await create_type(caller)
    german = await create_agent(caller, type_id, stt_language="de-DE")
    tools = await open_tools(runtime, caller, german)
    today = now().astimezone(BERLIN).date()
    for words, days in (("übermorgen", 2), ("tomorrow", 1), ((today + timedelta(days=3)).isoformat(), 3)):
        found = objects_at(await run(tools, "find_slots", day=words, not_before="14:00", not_after="15:00"), "slots")
        assert len(found) == 3, "at two, half past two, and three"
        expected = datetime.combine(today + timedelta(days=days), datetime.min.time(), BERLIN).replace(hour=14)
        assert found[0]["when"] == describe_moment(expected, BERLIN, "de", now=now())
    for words, fault in (("some day", "not understood"), ("2020-01-01", "over")):
        assert fault in text_at(await run(tools, "find_slots", day=words), "error")
    far = (today + timedelta(days=29)).isoformat()
    nothing = await run(tools, "find_slots", day=far, not_before="18:00")
    assert (nothing["slots"], "nothing is free" in str(nothing["note"])) == ([], True)


async def test_an_agent_names_appointment_types_of_its_organization(
    runtime: Runtime, caller: Caller, stranger: Caller
) -> None:
    first, second = await create_type(caller), await create_type(caller, name="Tasting")
    foreign = await create_type(stranger)
    refused = await caller.post("/v1/agents", {"name": "Agent", "appointment_type_ids": [foreign]})
    assert (refused.status, "appointment_type_ids.0" in str(refused.json["detail"])) == (422, True)
    agent_id = await create_agent(caller, first, second, first)
    agent = (await caller.get(f"/v1/agents/{agent_id}")).json
    assert texts_at(agent, "appointment_type_ids") == [first, second]
    tools = await open_tools(runtime, caller, agent_id)
    assert {spec.name for spec in tools.specs} >= {"find_slots", "book_appointment", "cancel_appointment"}
    assert "Consultation, Tasting" in text_at(await run(tools, "find_slots", day=DAY), "error")
    assert objects_at(await run(tools, "find_slots", appointment_type="tasting"), "slots")
    for type_id in (first, second):
        assert (await caller.send("DELETE", f"/v1/appointment-types/{type_id}")).status == 204
    assert "find_slots" not in {spec.name for spec in (await open_tools(runtime, caller, agent_id)).specs}


@pytest.mark.parametrize("missing", ["reason", "name"])
async def test_what_a_booking_lacks_is_asked_for(runtime: Runtime, caller: Caller, missing: str) -> None:
    questions: JsonValue = [{"name": "reason", "description": "What is it about?", "required": True}]
    agent_id = await create_agent(caller, await create_type(caller, fields=questions))
    tools = await open_tools(runtime, caller, agent_id)
    described = next(spec for spec in tools.specs if spec.name == "find_slots").description
    assert "What is it about? (required)" in described
    token = text_at(objects_at(await run(tools, "find_slots", day=DAY), "slots")[0], "slot_token")
    given: JsonObject = {"slot_token": token, "name": "Ada", "answers": {"reason": "Bread"}}
    lacking = {**given, "answers": {}} if missing == "reason" else {key: given[key] for key in given if key != "name"}
    refused = await tools.run(ToolCall("1", "book_appointment", lacking))
    assert missing in text_at(refused, "error")
    call = replace(ToolCall("1", "book_appointment", {}), arguments=given)
    assert (await tools.run(call))["booked"] is True
