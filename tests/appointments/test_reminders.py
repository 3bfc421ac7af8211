"""Events, reminders, and automations of appointments."""

from datetime import datetime, timedelta
from uuid import UUID

from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import open_content, seal_content
from switchboard.resources.appointments.jobs import remind_of_appointment
from switchboard.resources.automations.models import ActionRecord, AutomationRun
from switchboard.resources.identity.policy import CallingHours, Policy
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.appointments.test_changes import list_events
from tests.appointments.test_tools import create_agent, open_tools, run
from tests.fixtures.app import Caller, Organizations
from tests.fixtures.automations import (
    advance_runs,
    create_automation,
    get_actions,
    get_only_run,
    let_time_pass,
    list_runs,
)
from tests.fixtures.campaigns import create_agent_and_number
from tests.fixtures.json_access import Json, objects_at, text_at
from tests.fixtures.virtual_clock import CLOCK
from tests.fixtures.webhooks import create_endpoint
from tests.fixtures.work import do_due_work

ADA = "+15550100001"
DAYS = [
    ("Montag", "lunes", "lundi"),
    ("Dienstag", "martes", "mardi"),
    ("Mittwoch", "miércoles", "mercredi"),
    ("Donnerstag", "jueves", "jeudi"),
    ("Freitag", "viernes", "vendredi"),
    ("Samstag", "sábado", "samedi"),
    ("Sonntag", "domingo", "dimanche"),
]


async def wait_until(runtime: Runtime, moment: datetime) -> None:
    """Let time pass until a moment, and publish what is due then."""
    CLOCK.advance((moment - now()).total_seconds() + 1)
    await do_due_work(runtime, remind_of_appointment)


async def test_reminders_are_published_before_an_appointment(caller: Caller, runtime: Runtime) -> None:
    await create_endpoint(caller, "https://example.com/hooks", events=["appointment.reminder"])
    type_id = await create_type(caller, reminder_minutes=[60, 1440])
    slot, other = await list_free(caller, type_id, limit=2)
    made = await create(caller, "/v1/appointments", build_request(slot))
    canceled = await create(caller, "/v1/appointments", build_request(other))
    assert (await caller.send("DELETE", f"/v1/appointments/{canceled['id']}")).status == 204
    begin = datetime.fromisoformat(text_at(made, "starts_at"))
    await wait_until(runtime, begin - timedelta(days=1, minutes=5))
    assert await list_events(caller) == []
    await wait_until(runtime, begin - timedelta(days=1))
    await wait_until(runtime, begin - timedelta(hours=23))
    (reminder,) = await list_events(caller)
    assert (reminder["appointment_id"], reminder["minutes_before"]) == (made["id"], 1440)
    local = datetime.fromisoformat(text_at(reminder, "local_starts_at"))
    assert local.utcoffset() in (timedelta(hours=1), timedelta(hours=2))
    days = {"en": f"{local:%A}", **dict(zip(("de", "es", "fr"), DAYS[local.weekday()], strict=True))}
    assert all(day in text_at(reminder, "words", language) for language, day in days.items())
    # A changed rule counts for appointments that are booked.
    path = f"/v1/appointment-types/{type_id}"
    assert (await caller.send("PATCH", path, {"reminder_minutes": [120]})).status == 200
    await wait_until(runtime, begin - timedelta(minutes=119))
    await wait_until(runtime, begin - timedelta(minutes=59))
    await wait_until(runtime, begin + timedelta(minutes=1))
    assert [each["minutes_before"] for each in await list_events(caller)] == [1440, 120]


async def test_reminders_follow_the_appointment_and_the_calling_hours(
    organizations: Organizations, runtime: Runtime
) -> None:
    # The number has no region, so the organization's zone (UTC) counts; appointments are offered from nine in Berlin.
    caller = await organizations.create(policy=Policy(calling_hours=CallingHours(start="11:00", end="20:00")))
    await create_endpoint(caller, "https://example.com/hooks", events=["appointment.reminder"])
    type_id = await create_type(caller, reminder_minutes=[1440, 30])
    first, second = (await list_free(caller, type_id, limit=60))[0::17][:2]
    made = await create(caller, "/v1/appointments", build_request(first))
    moved = await caller.send("PATCH", f"/v1/appointments/{made['id']}", {"slot_token": second["slot_token"]})
    begin = datetime.fromisoformat(text_at(moved.json, "starts_at"))
    assert begin.date() > datetime.fromisoformat(text_at(made, "starts_at")).date()
    due = begin - timedelta(days=1)
    assert due.hour < 11
    await wait_until(runtime, due)
    assert await list_events(caller) == [], "the person may not be called yet"
    await wait_until(runtime, due.replace(hour=11))
    (reminder,) = await list_events(caller)
    assert (reminder["starts_at"], reminder["minutes_before"]) == (moved.json["starts_at"], 1440)
    await wait_until(runtime, begin - timedelta(minutes=30))
    await wait_until(runtime, begin + timedelta(minutes=30))
    assert len(await list_events(caller)) == 1, "the hours begin after the appointment"


async def test_a_reminder_sends_a_text_and_the_person_confirms(caller: Caller, runtime: Runtime) -> None:
    number_id = (await create_agent_and_number(runtime, caller))["phone_number_id"]
    text: Json = {
        "type": "send_sms",
        "params": {
            "from_number_id": number_id,
            "to_number": "{{ data.phone_number }}",
            "body": "{{ data.name }}, your {{ data.appointment_type }} is on {{ data.words.en }}. Do you come?",
        },
    }
    automation = await create_automation(caller, text, trigger_type="appointment.reminder")
    type_id = await create_type(caller, reminder_minutes=[1440])
    slot = (await list_free(caller, type_id, limit=1))[0]
    made = await create(caller, "/v1/appointments", build_request(slot))
    begin = datetime.fromisoformat(text_at(made, "starts_at"))
    await wait_until(runtime, begin - timedelta(days=1))
    await advance_runs(runtime, caller)
    sent = await get_only_run(caller, automation)
    assert sent["status"] == "completed", sent
    tools = await open_tools(runtime, caller, await create_agent(caller, type_id))
    assert (await run(tools, "confirm_appointment"))["confirmed"] is True
    path = f"/v1/appointments/{made['id']}"
    confirmed = (await caller.get(path)).json
    assert (confirmed["is_confirmed"], confirmed["confirmed_at"] is None) == (True, False)
    other = (await list_free(caller, type_id, limit=1))[0]
    moved = (await caller.send("PATCH", path, {"slot_token": other["slot_token"]})).json
    assert (moved["is_confirmed"], moved["confirmed_at"]) == (False, None), "it was another time"


async def test_an_automation_books_the_first_free_time(caller: Caller, runtime: Runtime) -> None:
    type_id = await create_type(caller, fields=[{"name": "topic", "required": True}])
    first, second = await list_free(caller, type_id, limit=2)
    params: Json = {
        "appointment_type_id": type_id,
        "phone_number": "{{ data.phone_number }}",
        "name": "{{ data.name }}",
        "earliest": str(first["starts_at"]),
        "fields": {"topic": "Visit {{ data.starts_at }}"},
    }
    again = await create_automation(
        caller, {"type": "book_appointment", "params": params}, trigger_type="appointment.booked"
    )
    made = await create(caller, "/v1/appointments", build_request(second, fields={"topic": "Teeth"}))
    for _ in range(8):
        await advance_runs(runtime, caller)
        await let_time_pass(runtime, caller)
    booked = (await caller.get("/v1/appointments?status=booked&limit=100")).json
    # Each booking is an event, which books again, until the guard of chains stops it.
    assert booked["total"] == 6
    statuses = [text_at(run, "status") for run in await list_runs(caller, again)]
    assert sorted(statuses) == ["completed"] * 5 + ["skipped"]
    starts = {text_at(item, "starts_at") for item in objects_at(booked, "items")}
    assert {text_at(first, "starts_at"), text_at(made, "starts_at")} < starts


async def test_an_automation_that_is_run_again_books_nothing_else(caller: Caller, runtime: Runtime) -> None:
    """A worker may die after the booking, also of the last free time, and before it has recorded the result."""
    type_id = await create_type(caller)
    slot, other = await list_free(caller, type_id, limit=2)
    params: Json = {
        "appointment_type_id": type_id,
        "phone_number": ADA,
        "name": "Ada",
        "earliest": str(slot["starts_at"]),
        "latest": str(slot["starts_at"]),
    }
    action: Json = {"type": "book_appointment", "params": params}
    automation = await create_automation(caller, action, trigger_type="appointment.booked")
    await create(caller, "/v1/appointments", build_request(other))
    await advance_runs(runtime, caller, steps=1)
    booked = await get_only_run(caller, automation)
    assert booked["status"] == "completed", booked
    async with runtime.database.write(caller.organization_id) as session:
        run = await session.get_one(AutomationRun, UUID(str(booked["id"])))
        await open_content(session, run)
        run.keep([ActionRecord(type=record.type, params=record.params) for record in run.records()])
        await seal_content(session, run)
        run.status, run.completed_at, run.due_at = "running", None, now()
    await advance_runs(runtime, caller, steps=1)
    again = [run for run in await list_runs(caller, automation) if run["id"] == booked["id"]]
    assert [get_actions(run)[0]["result"] for run in again] == [get_actions(booked)[0]["result"]]
    assert (await caller.get("/v1/appointments")).json["total"] == 2


async def test_an_automation_that_finds_no_time_says_so(caller: Caller, runtime: Runtime, stranger: Caller) -> None:
    type_id = await create_type(caller)
    slot = (await list_free(caller, type_id, limit=1))[0]
    earliest = datetime.fromisoformat(str(slot["starts_at"])) - timedelta(hours=8)
    params: Json = {
        "appointment_type_id": type_id,
        "phone_number": ADA,
        "name": "Ada",
        "earliest": earliest.isoformat(),
        "latest": (earliest + timedelta(hours=2)).isoformat(),
    }
    action: Json = {"type": "book_appointment", "params": params}
    automation = await create_automation(caller, action, trigger_type="appointment.booked")
    await create(caller, "/v1/appointments", build_request(slot))
    await advance_runs(runtime, caller)
    failed = await get_only_run(caller, automation)
    assert (failed["status"], get_actions(failed)[0]["error"]) == ("failed", "no time is free in the period")
    foreign = {**action, "params": {**params, "appointment_type_id": await create_type(stranger)}}
    refused = await caller.post(
        "/v1/automations", {"name": "x", "trigger_type": "appointment.booked", "actions": [foreign]}
    )
    assert refused.status == 422
    assert "is not an appointment type of the organization" in str(refused.json["detail"])
