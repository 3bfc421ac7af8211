"""Destroy an installation, and restore it from its backup."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.server import app
from switchboard.resources.calls.models import Call

from tests.fixtures.app import Caller, LivePlatform, run_server
from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at
from tests.fixtures.processes import start_live_platform, start_platform
from tests.fixtures.receiver import Receiver
from tests.fixtures.secret_values import SecretValues, create_secret_values, repeat_request
from tests.fixtures.servers import SECRET_KEY
from tests.fixtures.table_rows import count_table_rows, wait_until_idle
from tests.fixtures.webhooks import send_test

CONTACT = "+15550100001"


async def create_content(live: LivePlatform, receiver: Receiver) -> SecretValues:
    """Create what an installation has: a call with its recording, texts, contacts, a campaign, secrets, documents."""
    caller = live.caller
    await live.simulate_call("goodbye")
    await live.wait_for_end(at((await caller.get("/v1/calls")).json, "items", 0, "id"), analyzed=True)
    await post(caller, "/v1/sms", {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Ready."})
    await post(caller, "/v1/contacts", {"phone_number": CONTACT, "name": "Ada", "notes": "a\ttab, a\nline, a \\N"})
    await post(caller, "/v1/do-not-call", {"phone_number": "+15550100009"})
    contacts = [{"phone_number": CONTACT, "name": "Ada"}]
    campaign = {"name": "Reminders", "agent_id": live.agent_id, "phone_number_id": live.number_id, "contacts": contacts}
    await post(caller, "/v1/campaigns", campaign)
    params = {"to_number": CONTACT, "body": "Hello", "from_number_id": live.number_id}
    action = {"type": "send_sms", "params": params}
    await post(caller, "/v1/automations", {"name": "Reply", "trigger_type": "sms.received", "actions": [action]})
    base = (await post(caller, "/v1/knowledge-bases", {"name": "Bakery"}))["id"]
    document = {"filename": "parking.md", "content": "# Parking\n\nYou may leave your car behind the church."}
    await post(caller, f"/v1/knowledge-bases/{base}/documents", document)
    await eventually(lambda: search_parking(caller), bool)
    return await create_secret_values(caller, f"{receiver.url}/hook")


async def post(caller: Caller, path: str, body: object) -> Json:
    """Create a resource and return it."""
    response = await caller.post(path, body)
    assert response.status == 201, response.body
    return response.json


async def search_parking(caller: Caller) -> bool:
    """Return whether a search finds the document."""
    response = await caller.post("/v1/knowledge-bases/search", {"query": "Where can I park my car?"})
    assert response.status == 200, response.body
    items = response.json["items"]
    return bool(items) and "church" in str(at(response.json, "items", 0))


async def list_recordings(live: LivePlatform) -> dict[str, bytes]:
    """Return the recording of each call that has one, by the call's id."""
    async with live.runtime.database.write(live.caller.organization_id) as session:
        calls = (await session.exec(session.select(Call).where(col(Call.has_recording)))).all()
    return {str(call.id): (await live.caller.get(f"/v1/calls/{call.id}/recording")).body for call in calls}


async def run(operator: Operator, *arguments: str) -> dict[str, Any]:
    """Run a command beside the platform of this process, and return its JSON."""
    return await asyncio.to_thread(operator.ask, *arguments)


@asynccontextmanager
async def serve_requests(caller: Caller) -> AsyncIterator[None]:
    """Send requests within the block; none may fail."""
    finished = asyncio.Event()

    async def read() -> int:
        answered = 0
        while not finished.is_set():
            assert (await caller.get("/v1/agents")).status in (200, 429)
            answered += 1
        return answered

    reading = asyncio.create_task(read())
    yield
    finished.set()
    assert await reading > 0


@pytest.mark.system
@pytest.mark.timeout(900)
async def test_an_installation_is_destroyed_and_restored(tmp_path: Path, receiver: Receiver) -> None:
    folder, file = tmp_path / "data", tmp_path / "backup.tar"
    operator = Operator(SWITCHBOARD_DATA_DIR=str(folder), SWITCHBOARD_SECRET_KEYS=SECRET_KEY)
    async with start_live_platform(folder) as (live, servers):
        secrets = await create_content(live, receiver)
        recordings = await list_recordings(live)  # an audit entry each, which the count contains
        counted = await wait_until_idle(servers.directory.database_url)
        async with serve_requests(live.caller):
            made = await run(operator, "backup", str(file))
        assert await count_table_rows(servers.directory.database_url) == counted
        refused = await asyncio.to_thread(operator.run, "restore", str(file))
        assert refused.returncode == 1
        assert "is in use by process" in refused.stderr
    assert recordings
    assert min(len(recording) for recording in recordings.values()) > 1000
    assert made["recordings"] == len(recordings)

    shutil.rmtree(folder)
    assert await run(operator, "restore", str(file)) == made
    directory = DataDirectory(folder)
    directory.claim()
    async with EmbeddedServers(directory, redis=False):
        # The vectors were rebuilt, which makes maintenance of them due.
        assert await count_table_rows(directory.database_url) == {**counted, "vector_maintenance": 1}
    directory.release()
    # The embedded server does not run: the command starts it for as long as it needs it.
    stopped = await run(operator, "backup", str(tmp_path / "stopped.tar"))
    assert stopped["rows"] == made["rows"] - counted["vector_maintenance"] + 1
    assert stopped["recordings"] == made["recordings"]

    async with start_platform(folder) as (runtime, _, _), run_server(runtime, worker=False):
        caller = Caller(
            live.caller.organization_id, live.caller.key_id, live.caller.key, app.create_app(runtime).test_client()
        )
        restored = LivePlatform(runtime, caller, live.agent_id, live.number_id, live.number)
        assert await list_recordings(restored) == recordings
        assert await search_parking(caller)
        assert await repeat_request(caller) == secrets.kept_response
        receiver.received.clear()
        await send_test(caller, secrets.endpoint)
        (request,) = await receiver.first("/hook", seconds=60)
        assert request.signed_by(secrets.secret, secrets.previous_secret)
        operator.environment |= {
            "SWITCHBOARD_PORT": str(runtime.settings.port),
            "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        diagnosis = await run(operator, "doctor")
        assert diagnosis["ok"], diagnosis
