"""Retention: each kind of data is deleted after its days, never before its work is done, and nothing else changes."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
import sqlalchemy
from sqlalchemy import func
from sqlalchemy.exc import IntegrityError
from sqlmodel import col, delete, select, update
from switchboard.apps.worker.retention import delete_expired_data
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import TenantOwned, new_id, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, DueDelivery, DueEvent, Event, EventTarget
from switchboard.foundation.events.outbox import enqueue
from switchboard.foundation.object_store import ObjectStore, ObjectStoreAway
from switchboard.resources.appointments.models import CalendarEntry
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.queries import claim_upload
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Encryption, Policy, Retention
from switchboard.resources.phone_numbers.models import CarrierReference
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.calls import add_call, add_line, write_recording
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import at
from tests.fixtures.virtual_clock import CLOCK
from tests.fixtures.webhooks import list_items

DAY = timedelta(days=1)
MOST_PARAMETERS = 32_767
"""Of one statement, for asyncpg."""
CONSENT = {
    "rules": ["agent: default"],
    "place": "US-CA",
    "mode": "ask",
    "notice": "May we record this call?",
    "asked_at": "2026-11-22T09:30:00+00:00",
    "asked_ms": 100,
    "answer": True,
    "by": "speech",
    "answered_at": "2026-11-22T09:30:05+00:00",
    "answered_ms": 5100,
    "recording_offset_ms": 5100,
}


async def create_keeper(organizations: Organizations, **days: int) -> Caller:
    return await organizations.create(policy=Policy(retention=Retention(**days)))


async def add_ended_call(runtime: Runtime, caller: Caller, age: timedelta, **fields: object) -> Call:
    """Add a completed call of a minute, with a transcript of two lines."""
    began = now() - age
    call = await add_call(
        runtime, caller, began, **{"ended_at": began, "duration_seconds": 60, "call_summary": "All is well.", **fields}
    )
    async with runtime.database.write(caller.organization_id) as session:
        for position, role in enumerate(("agent", "user")):
            await add_line(session, call.id, "Hello.", position=position, role=role)
    return call


async def add_pending_delivery(runtime: Runtime, caller: Caller, call: Call) -> UUID:
    async with runtime.database.write(caller.organization_id) as session:
        target = EventTarget(
            id=new_id(), organization_id=caller.organization_id, kind="endpoint", url="https://example.com/"
        )
        session.add(target)
        await session.flush()
        body = f'{{"data": {{"call_id": "{call.id}"}}}}'
        return (await enqueue(session, target, "call.completed", body, subject_id=call.id)).id


async def count_rows(runtime: Runtime, caller: Caller, table: type[TenantOwned]) -> int:
    async with runtime.database.write(caller.organization_id) as session:
        return await session.count(session.select(table))


async def list_call_ids(caller: Caller) -> set[str]:
    response = await caller.get("/v1/calls")
    found = {str(call["id"]) for call in list_items(response)}
    assert response.json["total"] == len(found)
    return found


async def test_old_calls_are_deleted_with_what_they_have(runtime: Runtime, organizations: Organizations) -> None:
    caller = await create_keeper(organizations, calls=30)
    old = await add_ended_call(runtime, caller, 31 * DAY, has_recording=True, carrier_call_id="old")
    write_recording(runtime, old, caller=1, agent=1)
    young = await add_ended_call(runtime, caller, 29 * DAY, carrier_call_id="young")
    with pytest.raises(IntegrityError, match="the carrier's id is that of another call"):
        await add_call(runtime, caller, now(), carrier_call_id="young")
    before = (await caller.get("/v1/usage/history?months=2")).json
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(young.id)}
    for path in ("", "/transcript", "/recording", "/recording-url"):
        assert (await caller.get(f"/v1/calls/{old.id}{path}")).status == 404
    assert await count_rows(runtime, caller, TranscriptLine) == 2
    assert await count_rows(runtime, caller, CarrierReference) == 1
    assert not list((runtime.settings.data_dir / "recordings").rglob("*.wav"))
    assert (await caller.get("/v1/usage/history?months=2")).json == before


async def test_calls_are_kept_by_default(runtime: Runtime, caller: Caller) -> None:
    old = await add_ended_call(runtime, caller, 3000 * DAY)
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(old.id)}


@pytest.mark.parametrize(
    "open_work",
    [
        {"ended_at": None, "status": "in-progress"},
        {"analysis_due_at": now()},
        {"recording_due_at": now()},
        {"watch_at": now()},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_a_call_with_open_work_is_kept(
    runtime: Runtime, organizations: Organizations, open_work: dict[str, object]
) -> None:
    caller = await create_keeper(organizations, calls=0, recordings=0, transcripts=0)
    call = await add_ended_call(runtime, caller, DAY, has_recording=True, **open_work)
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(call.id)}
    assert await count_rows(runtime, caller, TranscriptLine) == 2
    assert (await caller.get(f"/v1/calls/{call.id}")).json["recording_url"] is not None


async def test_calls_are_deleted_while_thousands_of_others_await_their_webhooks(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await create_keeper(organizations, calls=1)
    old, kept = [await add_ended_call(runtime, caller, 2 * DAY) for _ in range(2)]
    pending = await add_pending_delivery(runtime, caller, kept)
    copied = {
        column.name: func.gen_random_uuid() if column.name in {"id", "subject_id"} else column
        for column in sqlalchemy.inspect(Delivery).local_table.columns
    }
    async with runtime.database.write(caller.organization_id) as session:
        numbers = func.generate_series(1, MOST_PARAMETERS).table_valued("number")
        copies = sqlalchemy.select(*copied.values()).join(numbers, sqlalchemy.true())
        rows = copies.where(col(Delivery.id) == pending)
        await session.exec(sqlalchemy.insert(Delivery).from_select(list(copied), rows))
        entry = {"created_at": now(), "due_at": now(), "is_ready": True}
        columns = [*(sqlalchemy.literal(value) for value in entry.values()), col(Delivery.id)]
        columns += [col(Delivery.organization_id), col(Delivery.target_id)]
        others = sqlalchemy.select(*columns).where(col(Delivery.id) != pending)
        await session.exec(
            sqlalchemy.insert(DueDelivery).from_select([*entry, "id", "organization_id", "target_id"], others)
        )
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(kept.id)} != {str(old.id)}


@pytest.mark.parametrize("encrypts", [False, True])
async def test_zero_retention_waits_for_the_webhooks_of_a_call(
    runtime: Runtime, organizations: Organizations, encrypts: bool
) -> None:
    retention = Retention(calls=0, transcripts=0, events=0)
    caller = await organizations.create(policy=Policy(retention=retention, encryption=Encryption(texts=encrypts)))
    ended, fresh = (
        await add_ended_call(runtime, caller, timedelta(minutes=4)),
        await add_ended_call(runtime, caller, timedelta(0)),
    )
    delivery_id = await add_pending_delivery(runtime, caller, ended)
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(ended.id), str(fresh.id)}
    assert len(list_items(await caller.get(f"/v1/calls/{ended.id}/transcript"))) == 2
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(Delivery).where(col(Delivery.id) == delivery_id).values(status="failed"))
        await session.delete(await session.get_one(DueDelivery, delivery_id))
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(fresh.id)}
    assert await count_rows(runtime, caller, Delivery) == 0


async def test_old_recordings_and_transcripts_are_deleted_and_their_calls_stay(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await create_keeper(organizations, recordings=7, transcripts=14)
    ours = await add_ended_call(runtime, caller, 8 * DAY, has_recording=True)
    write_recording(runtime, ours, caller=1, agent=1)
    pin = {"pin": {"value": "[keypad]", "origin": "keypad", "agent_id": str(uuid4()), "timestamp_ms": 0}}
    heard = {"consent": {**CONSENT, "heard": "Yes, please."}, "variables": pin}
    carriers = await add_ended_call(runtime, caller, 15 * DAY, carrier_recording_id="RE1", **heard)
    assert (await caller.get(f"/v1/calls/{carriers.id}")).json["variables"] == pin
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(ours.id), str(carriers.id)}
    assert not list((runtime.settings.data_dir / "recordings").rglob("*.wav"))
    for call in (ours, carriers):
        assert (await caller.get(f"/v1/calls/{call.id}")).json["recording_url"] is None
        assert (await caller.get(f"/v1/calls/{call.id}/recording")).status == 404
    assert (await caller.get(f"/v1/calls/{ours.id}")).json["call_summary"] == "All is well."
    assert (await caller.get(f"/v1/calls/{ours.id}")).json["consent"] is None
    expired = (await caller.get(f"/v1/calls/{carriers.id}")).json
    assert (expired["call_summary"], expired["variables"]) == (None, {})
    assert (at(expired, "consent", "answer"), at(expired, "consent", "heard")) == (True, None)
    assert (await caller.get(f"/v1/calls/{ours.id}/transcript")).status == 200
    assert (await caller.get(f"/v1/calls/{carriers.id}/transcript")).status == 404


async def test_a_page_says_that_a_transcript_has_been_deleted(
    runtime: Runtime, organizations: Organizations, people: People
) -> None:
    caller = await create_keeper(organizations, transcripts=1)
    call = await add_ended_call(runtime, caller, 2 * DAY)
    member = await people.join(caller.organization_id, role="builder")
    await runtime.call(delete_expired_data)
    page = await member.get(f"/dashboard/calls/{call.id}")
    assert page.status == 200
    assert "The transcript has been deleted." in page.html


async def test_a_call_stays_while_the_store_of_its_recording_is_away(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await create_keeper(organizations, calls=1, events=0)
    call = await add_ended_call(runtime, caller, 2 * DAY, has_recording=True)
    async with runtime.database.write(caller.organization_id) as session:
        session.add(Event(organization_id=caller.organization_id, name="call.completed", created_at=now() - DAY))

    async def refuse(_store: ObjectStore, _keys: object) -> None:
        raise ObjectStoreAway("no response")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "delete", refuse)
        await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(call.id)}
    assert await count_rows(runtime, caller, Event) == 0
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == set()


async def test_workers_that_delete_the_same_calls_count_their_usage_once(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await create_keeper(organizations, calls=0)
    for _ in range(5):
        await add_ended_call(runtime, caller, timedelta(minutes=4))
    before = (await caller.get("/v1/usage")).json
    await asyncio.gather(*(runtime.call(delete_expired_data) for _ in range(4)))
    assert await list_call_ids(caller) == set()
    assert (await caller.get("/v1/usage")).json == before


async def test_a_call_stays_whose_recording_a_server_begins_to_upload_meanwhile(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await create_keeper(organizations, calls=1)
    call = await add_ended_call(runtime, caller, 2 * DAY, has_recording=True)
    deletion = RecordingArchive.delete_recording

    async def delete_while_a_server_claims(archive: RecordingArchive, organization_id: UUID, call_id: UUID) -> None:
        async with runtime.database.write(organization_id) as session:
            assert await claim_upload(session, call_id)
        await deletion(archive, organization_id, call_id)

    monkeypatch.setattr(RecordingArchive, "delete_recording", delete_while_a_server_claims)
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(call.id)}


async def test_old_messages_are_deleted_and_an_opt_out_stays(runtime: Runtime, organizations: Organizations) -> None:
    caller = await create_keeper(organizations, messages=30)
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json
    texts: dict[str, UUID] = {}
    async with runtime.database.write(caller.organization_id) as session:
        for name, status, ages in (
            ("old", "open", [40, 31]),
            ("mixed", "open", [40, 2]),
            ("stopped", "closed", [40]),
            ("unanswered", "open", [40]),
        ):
            conversation = SmsConversation(
                organization_id=caller.organization_id,
                phone_number_id=UUID(str(number["id"])),
                contact_number=f"+1555010{len(texts):04d}",
                status=status,
                last_message_at=now() - ages[-1] * DAY,
                reply_due_at=now() + DAY if name == "unanswered" else None,
            )
            session.add(conversation)
            await session.flush()
            texts[name] = conversation.id
            for age in ages:
                message = SmsMessage(
                    organization_id=caller.organization_id,
                    created_at=now() - age * DAY,
                    conversation_id=conversation.id,
                    direction="inbound",
                    from_number=conversation.contact_number,
                    to_number=str(number["phone_number"]),
                    body=Content("Hello"),
                    status="received",
                    author="contact",
                    segments=1,
                    carrier="loopback",
                )
                await seal_content(session, message)
                session.add(message)
    before = (await caller.get("/v1/usage/history?months=3")).json
    await runtime.call(delete_expired_data)
    conversations = await caller.get("/v1/sms/conversations")
    assert conversations.json["total"] == 3
    assert {UUID(str(found["id"])) for found in list_items(conversations)} == set(texts.values()) - {texts["old"]}
    totals = {
        name: (await caller.get(f"/v1/sms/conversations/{texts[name]}/messages")).json.get("total") for name in texts
    }
    assert totals == {"old": None, "mixed": 1, "stopped": 0, "unanswered": 1}
    assert (await caller.get("/v1/usage/history?months=3")).json == before


async def test_ended_events_and_deliveries_are_kept_for_thirty_days(runtime: Runtime, caller: Caller) -> None:
    call = await add_ended_call(runtime, caller, DAY)
    ended, pending, young = [await add_pending_delivery(runtime, caller, call) for _ in range(3)]
    unnotified = Event(organization_id=caller.organization_id, name="call.completed", created_at=now() - 31 * DAY)
    async with runtime.database.write(caller.organization_id) as session:
        session.add(unnotified)
        session.add(DueEvent(id=unnotified.id, organization_id=caller.organization_id))
        over = {"status": "delivered"}
        for delivery_id, values in (
            (ended, {**over, "created_at": now() - 31 * DAY}),
            (pending, {"created_at": now() - 31 * DAY}),
            (young, over),
        ):
            await session.exec(update(Delivery).where(col(Delivery.id) == delivery_id).values(**values))
    async with runtime.database.system() as session:
        session.add(
            DeliveryAttempt(
                organization_id=caller.organization_id,
                delivery_id=ended,
                number=1,
                started_at=now(),
                duration_ms=1,
            )
        )
    await runtime.call(delete_expired_data)
    response = await caller.get("/v1/webhook-deliveries")
    assert {found["id"] for found in list_items(response)} == {str(pending), str(young)}
    assert response.json["total"] == 2
    assert await count_rows(runtime, caller, Event) == 1


async def test_expired_audit_entries_are_deleted_and_the_database_refuses_the_others(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await create_keeper(organizations, audit=365)
    async with runtime.database.write(caller.organization_id) as session:
        for age in (364, 366):
            session.add(
                AuditEntry(
                    organization_id=caller.organization_id,
                    created_at=now() - age * DAY,
                    actor="operator",
                    action="agent.created",
                    subject=f"{age}",
                )
            )
    await runtime.call(delete_expired_data)
    async with runtime.database.write(caller.organization_id) as session:
        deleted = await session.exec(delete(AuditEntry).where(session.owns(AuditEntry)))
        assert deleted.rowcount == 0
        left = set((await session.exec(select(AuditEntry.subject).where(session.owns(AuditEntry)))).all())
    assert {"364", "366"} & left == {"364"}


async def test_appointments_are_deleted_after_their_end(runtime: Runtime, organizations: Organizations) -> None:
    caller = await create_keeper(organizations, appointments=1)
    type_id = await create_type(caller)
    slots = await list_free(caller, type_id, limit=3)
    ids = [(await create(caller, "/v1/appointments", build_request(slot)))["id"] for slot in slots]
    assert (await caller.send("DELETE", f"/v1/appointments/{ids[0]}")).status == 204
    await runtime.call(delete_expired_data)
    assert (await caller.get("/v1/appointments")).json["total"] == 3, "a canceled one stays until its time, too"
    # The third has an event that has to leave its calendar first.
    async with runtime.database.write(caller.organization_id) as session:
        entries = session.select(CalendarEntry).where(col(CalendarEntry.appointment_id) == UUID(str(ids[2])))
        (await session.exec(entries)).one().state = "releasing"
    CLOCK.advance(8 * 24 * 3600)
    await runtime.call(delete_expired_data)
    assert [item["id"] for item in list_items(await caller.get("/v1/appointments"))] == [ids[2]]


async def test_a_legal_hold_keeps_everything(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(
        policy=Policy(retention=Retention(calls=0, transcripts=0, messages=0, events=0, audit=0, legal_hold=True))
    )
    call = await add_ended_call(runtime, caller, 400 * DAY)
    async with runtime.database.write(caller.organization_id) as session:
        session.add(
            AuditEntry(
                organization_id=caller.organization_id,
                created_at=now() - 400 * DAY,
                actor="operator",
                action="agent.created",
                subject="x",
            )
        )
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == {str(call.id)}
    assert await count_rows(runtime, caller, TranscriptLine) == 2
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(delete(AuditEntry).where(session.owns(AuditEntry)))).rowcount == 0
    async with runtime.database.system() as session:
        lifted = Policy(retention=Retention(calls=0))
        await session.exec(
            update(Organization).where(col(Organization.id) == caller.organization_id).values(policy=lifted)
        )
    await runtime.call(delete_expired_data)
    assert await list_call_ids(caller) == set()
