"""Erasure of a person, checked as a stranger would: every row, file, vector, key of Redis, and log line is searched."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis
from sqlmodel import col, update
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import Database, now
from switchboard.foundation.encryption.organization_keys import OrganizationKey
from switchboard.foundation.encryption.rotation import rotate_keys
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk import SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.resources.billing import ledger
from switchboard.resources.calls.models import Call
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.policy import Encryption, Policy, Retention
from switchboard.resources.knowledge_bases.jobs import maintain_vectors
from switchboard.resources.knowledge_bases.models import VectorMaintenance
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.privacy.erasure import ErasureRefused, PersonEraser
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.privacy.schemas import PrivacyReport
from switchboard.runtime import Runtime
from switchboard_vectorstore import tables as vector_tables

from tests.api.test_appointments import build_request, create_type, list_free
from tests.fixtures.administrator import Administrator
from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.automations import TAG, create_automation, wait_for_finished_runs
from tests.fixtures.calls import add_call, write_recording
from tests.fixtures.campaigns import create_agent_and_number, create_campaign
from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, text_at
from tests.fixtures.servers import SECRET_KEY
from tests.fixtures.webhooks import create_endpoint, list_items

_people = count(8_213_300)
ENCRYPTED = Policy(encryption=Encryption(texts=True))


def fresh_person() -> str:
    return f"+1646{next(_people)}"


async def erase(runtime: Runtime, caller: Caller, phone_number: str) -> PrivacyReport:
    return await runtime.call(PersonEraser).erase(caller.organization_id, phone_number, actor="operator")


async def live_through_everything(live: LivePlatform, person: str) -> None:
    """Let a person call, be called, text, and be a contact that automations, campaigns, and webhooks know."""
    caller, organization_id = live.caller, live.caller.organization_id
    async with live.runtime.database.write(organization_id) as session:
        await ledger.credit_account(session, Decimal(25), note="Paid in advance.")
    await create_endpoint(caller, "http://127.0.0.1:9/")
    automation = await create_automation(caller, TAG)
    callbacks = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        await carrier.simulate_text_message(
            from_number=person, to_number=live.number, body=f"I am {person}.", callbacks=callbacks
        )
        await carrier.simulate_call(
            from_number=person, to_number=live.number, lines=[SpokenLine(text="goodbye")], callbacks=callbacks
        )
    await wait_for_finished_runs(caller, automation)
    placed = await live.place_call(person, metadata={"customer": person})
    ended = await live.wait_for_end(placed["id"], analyzed=True)
    assert ended["status"] == "completed", ended
    for call in list_items(await caller.get("/v1/calls")):
        await live.wait_for_end(call["id"], analyzed=True)
        await live.wait_for_recording(call["id"])
    key = f"contact {person}"
    body = {"phone_number": fresh_person(), "notes": f"Knows {person}."}
    assert (await caller.send("POST", "/v1/contacts", body, Idempotency_Key=key)).status == 201
    await create_campaign(
        caller, {"name": "C", "agent_id": live.agent_id, "phone_number_id": live.number_id}, [person, fresh_person()]
    )
    await cancel_an_appointment(caller, person)
    base = (await caller.post("/v1/knowledge-bases", {"name": "Staff"})).json
    document = {"filename": "staff.txt", "content_type": "text/plain", "content": f"Ann: {person}."}
    assert (await caller.post(f"/v1/knowledge-bases/{base['id']}/documents", document)).status == 201


async def cancel_an_appointment(caller: Caller, person: str) -> None:
    """Book an appointment of a person, and cancel it: a coming one would be waited for."""
    slot = (await list_free(caller, await create_type(caller), limit=1))[0]
    booked = await caller.post("/v1/appointments", build_request(slot, phone_number=person))
    assert (await caller.send("DELETE", f"/v1/appointments/{booked.json['id']}")).status == 204


async def read_redis(redis: Redis) -> bytes:
    """Read every key of Redis with its value."""
    readers: dict[bytes, Callable[[Any], Any]] = {
        b"hash": redis.hgetall,
        b"list": lambda key: redis.lrange(key, 0, -1),
        b"set": redis.smembers,
        b"string": redis.get,
        b"zset": lambda key: redis.zrange(key, 0, -1),
    }
    found = []
    async for key in redis.scan_iter():
        kind = await redis.type(key)
        found.append((key, await readers[kind](key) if kind != b"none" else None))
    return repr(found).encode()


@pytest.mark.local_receivers
@pytest.mark.parametrize("live", [Policy(), ENCRYPTED], indirect=True, ids=["plain", "encrypted"])
async def test_an_erased_person_is_in_no_row_file_vector_redis_key_or_log_line(
    live: LivePlatform,
    administrator: Administrator,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    person, caller, runtime = fresh_person(), live.caller, live.runtime
    digits = person[1:]
    await live_through_everything(live, person)
    await administrator.age(caller.organization_id)
    usage = (await caller.get("/v1/usage/history?months=2")).json
    await administrator.mention_everywhere(caller.organization_id, person)
    accounts = await administrator.read_ledger(caller.organization_id)
    tables = {row.partition(":")[0] for row in await administrator.list_rows_with(caller.organization_id, digits)}
    assert {"call", "event", "delivery", "automation_run", "contact", "sms_message", "knowledge_text"} <= tables
    assert {
        "appointment",
        "audit_entry",
        "ledger_entry",
        "campaign_contact",
        "transcript_line",
        "idempotency_record",
    } <= tables
    recordings = runtime.settings.data_dir / "recordings"
    assert len([path for path in recordings.rglob("*") if path.is_file()]) == 2

    report = await erase(runtime, caller, person)

    assert not report.waiting
    assert report.deleted["call"] == 2
    assert not await administrator.list_rows_with(caller.organization_id, digits)
    assert await administrator.read_ledger(caller.organization_id) == accounts
    assert (await caller.get("/v1/usage/history?months=2")).json == usage
    await wait_for_new_vectors(live, monkeypatch)
    assert not [path for path in recordings.rglob("*") if path.is_file()]
    assert not [path for path in runtime.settings.data_dir.rglob("*") if digits.encode() in read(path)]
    assert digits.encode() not in await read_redis(runtime.redis)
    written = capfd.readouterr()
    assert digits not in written.out + written.err
    again = await erase(runtime, caller, person)
    assert not again.deleted
    assert not again.redacted


def read(path: Path) -> bytes:
    return path.name.encode() + (path.read_bytes() if path.is_file() else b"")


async def wait_for_new_vectors(live: LivePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until documents have their new vectors, and the files of the old ones have passed their ten minutes."""
    caller, runtime = live.caller, live.runtime
    base = list_items(await caller.get("/v1/knowledge-bases"))[0]

    async def list_statuses() -> list[object]:
        documents = list_items(await caller.get(f"/v1/knowledge-bases/{base['id']}/documents"))
        return [document["status"] for document in documents]

    await eventually(list_statuses, lambda statuses: statuses == ["ready"])
    monkeypatch.setattr(vector_tables, "VERSIONS_KEPT", timedelta(milliseconds=1))
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(VectorMaintenance).values(due_at=now() - timedelta(seconds=1)))
    await runtime.call(maintain_vectors, organization_id=caller.organization_id)


async def test_a_live_call_waits_and_the_next_erasure_deletes_it(runtime: Runtime, caller: Caller) -> None:
    person = fresh_person()
    call = await add_call(runtime, caller, now(), status="in-progress", from_number=person)
    report = await erase(runtime, caller, person)
    assert (report.waiting, report.deleted.get("call", 0)) == ({"call": 1}, 0)
    assert (await caller.get(f"/v1/calls/{call.id}")).json["from_number"] == person
    async with runtime.database.write(caller.organization_id) as session:
        ended = update(Call).where(col(Call.id) == call.id)
        await session.exec(ended.values(status="completed", ended_at=now() - timedelta(hours=1)))
    assert (await erase(runtime, caller, person)).deleted["call"] == 1
    assert (await caller.get(f"/v1/calls/{call.id}")).status == 404


async def test_other_people_and_organizations_keep_what_they_have(
    runtime: Runtime, caller: Caller, stranger: Caller
) -> None:
    person, other = fresh_person(), fresh_person()
    for organization, number in ((caller, person), (caller, other), (stranger, person)):
        assert (await organization.post("/v1/contacts", {"phone_number": number, "name": "Ann"})).status == 201
    report = await erase(runtime, caller, person)
    assert report.deleted["contact"] == 1
    assert [item["phone_number"] for item in list_items(await caller.get("/v1/contacts"))] == [other]
    assert [item["phone_number"] for item in list_items(await stranger.get("/v1/contacts"))] == [person]


async def test_a_number_in_an_encrypted_text_of_somebody_else_is_exported_and_erased(
    runtime: Runtime, organizations: Organizations, operator: Operator, tmp_path: Path
) -> None:
    person = fresh_person()
    caller = await organizations.create(policy=ENCRYPTED)
    summary, data = f"They asked about {person}.", {"friend": person}
    call = await add_call(runtime, caller, now(), call_summary=summary, extracted_data=data)
    await add_call(runtime, caller, now(), from_number=person, call_summary="They asked for bread.")
    archive = tmp_path / "person.zip"
    operator.ask("privacy", "export", "--org", str(caller.organization_id), "--phone", person, str(archive))
    with ZipFile(archive) as exported:
        found = json.loads(exported.read("data.json"))
    assert ([row["call_summary"] for row in found["call"]], found["mentions"]) == (
        ["They asked for bread."],
        [f"call {call.id}"],
    )
    assert (await erase(runtime, caller, person)).redacted["call"] == 1
    left = (await caller.get(f"/v1/calls/{call.id}")).json
    assert (left["call_summary"], left["extracted_data"]) == ("They asked about [erased].", {"friend": "[erased]"})
    async with runtime.database.write(caller.organization_id) as session:
        stored = (await session.get_one(Call, call.id)).call_summary.stored
    assert str(stored).startswith("sbt1.")


async def test_the_counters_of_a_campaign_count_the_contacts_that_are_left(runtime: Runtime, caller: Caller) -> None:
    person = fresh_person()
    body = {"name": "C", **await create_agent_and_number(runtime, caller)}
    campaign = await create_campaign(caller, body, [person, fresh_person()])
    await erase(runtime, caller, person)
    left = (await caller.get(f"/v1/campaigns/{campaign['id']}")).json
    contacts = (await caller.get(f"/v1/campaigns/{campaign['id']}/contacts")).json
    assert (left["total_contacts"], contacts["total"]) == (1, 1)


async def test_a_number_of_the_configuration_is_not_erased(runtime: Runtime, caller: Caller) -> None:
    ours = fresh_number()
    number = (await caller.post("/v1/phone-numbers", {"phone_number": ours})).json["id"]
    with pytest.raises(ErasureRefused, match=f"phone_number {number}"):
        await erase(runtime, caller, ours)
    assert [item["phone_number"] for item in list_items(await caller.get("/v1/phone-numbers"))] == [ours]


async def test_an_erased_person_is_still_not_called(runtime: Runtime, caller: Caller) -> None:
    person = fresh_person()
    await caller.post("/v1/do-not-call", {"phone_number": person})
    assert (await erase(runtime, caller, person)).is_on_do_not_call_list
    assert list_items(await caller.get("/v1/do-not-call")) == []
    numbers = await create_agent_and_number(runtime, caller)
    call = {"agent_id": numbers["agent_id"], "from_number_id": numbers["phone_number_id"], "to_number": person}
    refused = await caller.post("/v1/calls", call)
    assert (refused.status, text_at(refused.json, "code")) == (409, "invalid_state"), refused.body
    entry = (await caller.post("/v1/do-not-call", {"phone_number": person})).json
    assert (await caller.send("DELETE", f"/v1/do-not-call/{entry['id']}")).status == 204
    assert (await caller.post("/v1/calls", call)).status == 201


async def test_the_opt_out_of_an_erased_person_outlives_a_rotation_of_keys(
    runtime: Runtime, caller: Caller, operator: Operator, servers: DataDirectory
) -> None:
    person = fresh_person()
    await caller.post("/v1/do-not-call", {"phone_number": person})
    await erase(runtime, caller, person)
    rotated = KeyRing(["a new key", SECRET_KEY])
    async with runtime.database.write(caller.organization_id) as session:
        before = (await session.exec(session.select(OrganizationKey))).one().wrapped
    async for _ in rotate_keys(runtime.database, rotated):
        pass
    async with runtime.database.read(caller.organization_id) as session:
        parts = replace(session.parts, keyring=KeyRing(["a new key"]))
    database = Database(servers.database_url, pool_size=1, parts=parts)
    async with database.read(caller.organization_id) as session:
        assert (await session.exec(session.select(OrganizationKey))).one().wrapped != before
        assert await do_not_call.is_listed(session, person)
    await database.close()
    async for _ in rotate_keys(runtime.database, KeyRing([SECRET_KEY, "a new key"])):  # for the other tests
        pass


@pytest.mark.parametrize(
    ("written", "redacted"),
    [
        ("Call +1 (646) 821-3300 now", "Call [erased] now"),
        ("0016468213300", "[erased]"),
        ("16468213300.", "[erased]."),
        ("646.821.3300", "[erased]"),
        ("tel:%2B16468213300", "tel:%2B[erased]"),
        ("+164682133001", "+164682133001"),
        ("916468213300", "916468213300"),
        ({"+16468213300": [16468213300, True]}, {"[erased]": ["[erased]", True]}),
    ],
)
def test_a_number_is_found_as_people_write_it(written: JsonValue, redacted: JsonValue) -> None:
    assert NumberPattern("+16468213300").redact(written) == redacted


def test_short_numbers_need_their_plus() -> None:
    pattern = NumberPattern("+4530112")
    assert pattern.redact("+45 30112, 4530112 ms") == "[erased], 4530112 ms"


async def test_the_command_exports_and_erases(
    runtime: Runtime, caller: Caller, operator: Operator, tmp_path: Path
) -> None:
    person = fresh_person()
    call = await add_call(
        runtime, caller, now(), ended_at=now() - timedelta(hours=1), from_number=person, has_recording=True
    )
    write_recording(runtime, call, caller=1, agent=1)
    await caller.post("/v1/contacts", {"phone_number": person, "name": "Ann"})
    await caller.post("/v1/contacts", {"phone_number": fresh_person(), "notes": f"Knows {person}"})
    options = ("--org", str(caller.organization_id), "--phone", person)
    archive = tmp_path / "ann.zip"
    operator.ask("privacy", "export", *options, str(archive))
    with ZipFile(archive) as exported:
        data = json.loads(exported.read("data.json"))
        recording = exported.read(f"recordings/{call.id}.wav")
    assert [contact["name"] for contact in data["contact"]] == ["Ann"]
    assert ([row["id"] for row in data["call"]], recording[:4]) == ([str(call.id)], b"RIFF")
    assert {mention.partition(" ")[0] for mention in data["mentions"]} == {"contact", "contact_search"}
    again = operator.run("privacy", "export", *options, str(archive))
    assert (again.returncode, again.stderr) == (1, f"switchboard: {archive} exists already\n")
    erased: Json = {**operator.ask("privacy", "erase", *options, "--yes")}
    assert erased["deleted"] == {"call": 1, "contact": 1}
    assert (erased["redacted"], erased["waiting"]) == ({"contact": 1, "contact_search": 1}, {})
    entries = await list_audit_actions(runtime, caller)
    assert entries[-2:] == ["person.exported", "person.erased"]
    wrong = operator.run("privacy", "erase", "--org", str(caller.organization_id), "--phone", "555", "--yes")
    assert (wrong.returncode, "E.164" in wrong.stderr) == (2, True)


async def list_audit_actions(runtime: Runtime, caller: Caller) -> list[str]:
    async with runtime.database.write(caller.organization_id) as session:
        rows = session.select(AuditEntry).order_by(col(AuditEntry.created_at), col(AuditEntry.id))
        return [entry.action for entry in (await session.exec(rows)).all()]


async def test_entries_of_the_audit_log_change_only_in_an_erasure(runtime: Runtime, caller: Caller) -> None:
    await caller.post("/v1/contacts", {"phone_number": fresh_person()})
    async with runtime.database.write(caller.organization_id) as session:
        changed = await session.exec(update(AuditEntry).where(session.owns(AuditEntry)).values(subject="nothing"))
    assert changed.rowcount == 0


async def test_a_legal_hold_refuses_an_erasure_by_the_operator(
    runtime: Runtime, organizations: Organizations, operator: Operator
) -> None:
    caller = await organizations.create(policy=Policy(retention=Retention(legal_hold=True)))
    call = await add_call(runtime, caller, now() - timedelta(hours=1), to_number=fresh_person())
    refused = operator.run("privacy", "erase", "--org", str(caller.organization_id), "--phone", call.to_number, "--yes")
    assert refused.returncode == 1
    assert "legal hold" in refused.stderr
    assert (await caller.get(f"/v1/calls/{call.id}")).status == 200
