"""Privacy requests: copies of a person's data and its deletion, by an owner's key."""

import asyncio
import io
import json
from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID
from zipfile import ZipFile

import aiohttp
import pytest
from sqlmodel import col, select
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import now
from switchboard.resources.identity.policy import Encryption, Policy, Retention
from switchboard.resources.privacy.export import PersonExporter
from switchboard.resources.privacy.jobs import PrivacyRequestRunner
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at

PERSON = "+16468213900"


async def create_request(caller: Caller, kind: str, phone_number: str = PERSON) -> Json:
    created = await caller.post("/v1/privacy-requests", {"kind": kind, "phone_number": phone_number})
    assert (created.status, created.json["status"], created.json["phone_number"]) == (201, "queued", phone_number)
    return created.json


async def get_request(caller: Caller, request: Json) -> Json:
    return (await caller.get(f"/v1/privacy-requests/{request['id']}")).json


async def run_request(runtime: Runtime, caller: Caller, request: Json) -> Json:
    """Carry out a request as a worker does, now."""
    async with runtime.database.write(caller.organization_id) as session:
        (await session.get_one(PrivacyRequest, UUID(str(request["id"])))).due_at = now()
    await runtime.call(PrivacyRequestRunner).run_due_request(caller.organization_id, UUID(str(request["id"])))
    return await get_request(caller, request)


async def list_audited(runtime: Runtime, caller: Caller) -> list[str]:
    async with runtime.database.write(caller.organization_id) as session:
        rows = select(AuditEntry.action).where(
            session.owns(AuditEntry), col(AuditEntry.action).regexp_match("^p(e|riv)")
        )
        return list((await session.exec(rows.order_by(col(AuditEntry.id)))).all())


@pytest.mark.parametrize("live", [Policy(), Policy(encryption=Encryption(recordings=True))], indirect=True)
async def test_an_export_is_a_file_behind_a_link(live: LivePlatform) -> None:
    runtime, caller = live.runtime, live.caller
    call = await add_call(runtime, caller, now(), from_number=PERSON, ended_at=now(), watch_at=None)
    request = await create_request(caller, "export")
    done = await eventually(lambda: get_request(caller, request), lambda found: found["status"] == "completed")
    assert at(done, "report", "exported", "call") == 1
    link = (await caller.get(f"/v1/privacy-requests/{request['id']}/export-url")).json
    async with aiohttp.ClientSession() as anybody, anybody.get(str(link["url"])) as response:
        assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
        with ZipFile(io.BytesIO(await response.read())) as archive:
            content = json.loads(archive.read("data.json"))
    assert [row["id"] for row in content["call"]] == [str(call.id)]
    async with aiohttp.ClientSession() as anybody, anybody.get(f"{link['url']}x") as response:
        assert response.status == 404
    assert await list_audited(runtime, caller) == [
        "privacy_request.created",
        "person.exported",
        "privacy_export.read",
    ]


async def test_an_erasure_counts_rows_and_forgets_the_number(runtime: Runtime, caller: Caller) -> None:
    exported = await run_request(runtime, caller, await create_request(caller, "export"))
    await add_call(runtime, caller, now() - timedelta(hours=1), to_number=PERSON, ended_at=now() - timedelta(minutes=9))
    assert (await caller.post("/v1/contacts", {"name": "Ann", "phone_number": PERSON})).status == 201
    done = await run_request(runtime, caller, await create_request(caller, "erase"))
    assert (done["status"], done["phone_number"]) == ("completed", None)
    assert at(done, "report", "deleted", "contact") == at(done, "report", "deleted", "call") == 1
    assert (await get_request(caller, exported))["phone_number"] is None
    assert (await caller.get(f"/v1/privacy-requests/{exported['id']}/export-url")).status == 404
    listed = (await caller.get("/v1/privacy-requests")).json
    assert PERSON not in json.dumps(listed)


async def test_a_request_whose_number_was_erased_meanwhile_ends(runtime: Runtime, caller: Caller) -> None:
    export = await create_request(caller, "export")
    await run_request(runtime, caller, await create_request(caller, "erase"))
    ended = await run_request(runtime, caller, export)
    assert (ended["status"], ended["phone_number"]) == ("failed", None)
    assert "erased" in str(ended["error_message"])


async def test_an_erasure_waits_for_a_live_call(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now(), to_number=PERSON, status="in-progress", ended_at=None)
    request = await create_request(caller, "erase")
    waiting = await run_request(runtime, caller, request)
    assert (waiting["status"], at(waiting, "report", "waiting")) == ("running", {"call": 1})
    async with runtime.database.write(caller.organization_id) as session:
        stored = await session.merge(call)
        stored.status, stored.ended_at, stored.watch_at = "completed", now() - timedelta(minutes=9), None
    done = await run_request(runtime, caller, request)
    assert (done["status"], at(done, "report", "waiting")) == ("completed", {})
    assert at(done, "report", "deleted", "call") == 1


async def test_the_lease_of_a_request_holds_as_long_as_its_worker_lives(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def export(*_arguments: object, **_options: object) -> Counter[str]:
        """Export for longer than it takes to renew the lease."""
        begun.set()
        await released.wait()
        return Counter()

    monkeypatch.setattr(PersonExporter, "export", export)
    request = await create_request(caller, "export")
    worker = asyncio.create_task(run_request(runtime, caller, request))
    await begun.wait()

    async def read_lease() -> datetime:
        async with runtime.database.write(caller.organization_id) as session:
            due_at = (await session.get_one(PrivacyRequest, UUID(str(request["id"])))).due_at
        assert due_at is not None
        return due_at

    first = await read_lease()
    await eventually(read_lease, lambda lease: lease > first)
    worker.cancel()
    await asyncio.wait({worker})
    assert await read_lease() - now() < timedelta(minutes=3), "another worker takes it up soon"
    released.set()
    assert (await run_request(runtime, caller, request))["status"] == "completed"


async def test_the_file_of_an_export_is_deleted_when_it_expires(runtime: Runtime, caller: Caller) -> None:
    exported = await run_request(runtime, caller, await create_request(caller, "export"))
    async with runtime.database.write(caller.organization_id) as session:
        stored = await session.get_one(PrivacyRequest, UUID(str(exported["id"])))
        assert stored.due_at == stored.file_expires_at
    expired = await run_request(runtime, caller, exported)
    assert (expired["status"], expired["file_expires_at"]) == ("completed", None)
    assert (await caller.get(f"/v1/privacy-requests/{exported['id']}/export-url")).status == 404
    assert not list(runtime.settings.data_dir.rglob("*.zip"))


async def test_a_legal_hold_refuses_an_erasure_and_no_export(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(retention=Retention(legal_hold=True)))
    refused = await caller.post("/v1/privacy-requests", {"kind": "erase", "phone_number": PERSON})
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    assert "legal hold" in str(refused.json["detail"])
    assert (await run_request(runtime, caller, await create_request(caller, "export")))["status"] == "completed"


async def test_a_number_in_the_configuration_refuses_an_erasure(caller: Caller) -> None:
    bought = await caller.post("/v1/phone-numbers", {"phone_number": PERSON})
    refused = await caller.post("/v1/privacy-requests", {"kind": "erase", "phone_number": PERSON})
    assert refused.status == 409
    assert f"phone_number {bought.json['id']}" in str(refused.json["detail"])
