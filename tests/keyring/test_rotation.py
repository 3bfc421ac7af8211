"""Rotation of the secret keys while the platform serves, and keys that are missing."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest_asyncio
from pydantic import SecretStr
from sqlmodel import SQLModel
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.apps.worker.worker import run_worker
from switchboard.foundation.encryption.organization_keys import get_or_create_organization_key
from switchboard.foundation.encryption.rotation import rotate_keys
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.calls.dialing import build_media_url, read_media_token
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.service import create_organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.command_line import Operator
from tests.fixtures.receiver import Receiver
from tests.fixtures.secret_values import (
    add_authenticator_app,
    create_secret_values,
    list_columns_with_ciphertexts,
    list_marked_columns,
    repeat_request,
)
from tests.fixtures.webhooks import send_test

OLD, NEW = "the old key: 32 characters or more", "the new key: 32 characters or more"
OLD_FINGERPRINT, NEW_FINGERPRINT = KeyRing([OLD]).fingerprints[0], KeyRing([NEW]).fingerprints[0]
NOT_ENCRYPTED = {
    "delivery_due.lease_token": "a random fencing token",
    "automation_run.lease_token": "a random fencing token",
    "oauth_client.client_id": "public",
    "idempotency_record.key": "the client's name for its request",
    "passkey.credential_id": "a name that browsers send, beside a public key",
}


class Installation:
    """Processes with different keys over one database, and a Redis database, of their own."""

    def __init__(self, stack: AsyncExitStack, servers: DataDirectory, database_url: str, folder: Path) -> None:
        self._stack = stack
        self._redis_url = f"{servers.redis_url}?db=1"
        self._database_url = database_url
        self._folder = folder
        self.registry = Registry.discover()

    async def start(self, *keys: str) -> Runtime:
        """Return the runtime of a process with these keys."""
        settings = Settings(
            data_dir=self._folder,
            secret_keys=[SecretStr(key) for key in keys],
            webhook_allowed_networks=[ip_network("127.0.0.0/8")],
        )
        opened = open_process_runtime(
            settings, database_url=self._database_url, redis_url=self._redis_url, registry=self.registry
        )
        return await self._stack.enter_async_context(opened)

    def build_operator(self, *keys: str) -> Operator:
        """Return an operator whose commands have these keys."""
        return Operator(
            SWITCHBOARD_DATA_DIR=str(self._folder),
            SWITCHBOARD_DATABASE_URL=self._database_url,
            SWITCHBOARD_REDIS_URL=self._redis_url,
            SWITCHBOARD_SECRET_KEYS=",".join(keys),
        )


@pytest_asyncio.fixture
async def installation(servers: DataDirectory, migrated_database: str, tmp_path: Path) -> AsyncIterator[Installation]:
    """An installation with a migrated database of its own."""
    async with AsyncExitStack() as stack:
        yield Installation(stack, servers, migrated_database, tmp_path / "data")


def connect(runtime: Runtime, caller: Caller) -> Caller:
    """Return the same client at another process."""
    return Caller(caller.organization_id, caller.key_id, caller.key, app.create_app(runtime).test_client())


async def create_caller(runtime: Runtime) -> Caller:
    """Create an organization with a key."""
    return await Organizations(runtime, app.create_app(runtime).test_client()).create()


async def create_caller_without_providers(runtime: Runtime) -> Caller:
    """Create an organization without providers, whose check takes a minute, with a key."""
    async with runtime.database.system() as session:
        organization = create_organization(session, name="No providers")
    client = app.create_app(runtime).test_client()
    return await Organizations(runtime, client).create_key(organization.id, scopes=list(SCOPES))


async def get_readiness(runtime: Runtime) -> tuple[int, dict[str, Any]]:
    """Return status and content of `/readyz`."""
    response = await app.create_app(runtime).test_client().get("/readyz")
    return response.status_code, await response.get_json()


@asynccontextmanager
async def run_deliveries(runtime: Runtime) -> AsyncIterator[None]:
    """Run a worker."""
    stop = asyncio.Event()
    task = asyncio.create_task(run_worker(runtime, stop))
    yield
    stop.set()
    await task


async def test_keys_are_rotated_without_a_failed_request(installation: Installation, receiver: Receiver) -> None:
    before = await installation.start(OLD)
    caller = await create_caller(before)
    secrets = await create_secret_values(caller, f"{receiver.url}/hook")
    user_id, recovery_code = await add_authenticator_app(before)
    added, moved = await installation.start(OLD, NEW), await installation.start(NEW, OLD)
    for runtime in (added, moved):
        assert await repeat_request(connect(runtime, caller)) == secrets.kept_response
        assert (await get_readiness(runtime))[1]["secret_keys"] == "ok"

    result: Any = installation.build_operator(NEW, OLD).ask("keys", "rotate")
    values = result["rotated"]
    assert result == {
        "rotated": values,
        "remaining": 0,
        "keys": [
            {"fingerprint": NEW_FINGERPRINT, "rows": values, "configured": True},
            {"fingerprint": OLD_FINGERPRINT, "rows": 0, "configured": True},
        ],
    }
    assert values >= len(list_marked_columns())
    again = installation.build_operator(NEW, OLD).run("keys", "rotate")
    assert again.returncode == 0
    assert f"{NEW_FINGERPRINT}: {values} secrets, the first key" in again.stdout
    assert f"{OLD_FINGERPRINT}: 0 secrets, not in use: remove it" in again.stdout

    after = await installation.start(NEW)
    for runtime in (added, moved, after):
        assert await repeat_request(connect(runtime, caller)) == secrets.kept_response
    assert (await get_readiness(after))[1] == {
        "status": "ok",
        "database": "ok",
        "redis": "ok",
        "secret_keys": "ok",
        "calls": "ok",
    }
    await after.call(SecondFactors).check(user_id, recovery_code)
    async with run_deliveries(after):
        await send_test(connect(after, caller), secrets.endpoint)
        (request,) = await receiver.first("/hook")
    assert request.signed_by(secrets.secret, secrets.previous_secret)


async def test_every_encrypted_column_is_marked(installation: Installation, receiver: Receiver) -> None:
    runtime = await installation.start(OLD)
    caller = await create_caller(runtime)
    await create_secret_values(caller, f"{receiver.url}/hook")
    async with runtime.database.write(caller.organization_id) as session:
        await get_or_create_organization_key(session, "anything")
    await add_authenticator_app(runtime)
    assert await list_columns_with_ciphertexts(runtime) == list_marked_columns()


def test_a_column_with_the_name_of_a_secret_is_encrypted_or_a_hash() -> None:
    names = {
        f"{table.name}.{column.name}"
        for table in SQLModel.metadata.sorted_tables
        for column in table.columns
        if re.search("secret|password|token|credential|api_key", column.name)
        and not re.search("_hash$|_at$", column.name)
    }
    assert names - NOT_ENCRYPTED.keys() == list_marked_columns() - {
        "idempotency_record.body",
        "organization_key.wrapped",
        "privacy_request.sealed_number",
    }


async def test_a_media_token_is_accepted_while_its_key_is_configured(installation: Installation) -> None:
    call = Call(
        organization_id=UUID(int=1),
        id=UUID(int=2),
        carrier="loopback",
        direction="inbound",
        from_number="",
        to_number="",
    )
    old, added, moved, new = [await installation.start(*keys) for keys in ([OLD], [OLD, NEW], [NEW, OLD], [NEW])]

    def accepts(reader: Runtime, signer: Runtime) -> bool:
        token = build_media_url(
            signer.settings, signer.keyring, carrier=call.carrier, organization_id=call.organization_id, call_id=call.id
        ).rpartition("/")[2]
        grant = read_media_token(reader.keyring, token)
        return grant is not None and (grant.call_id, grant.token) == (call.id, token)

    # Each step of a rotation runs beside the one before it.
    for first, second in ((old, added), (added, moved), (moved, new)):
        assert accepts(first, second)
        assert accepts(second, first)
    assert not accepts(new, old)
    assert not accepts(old, new)


async def test_a_missing_key_is_reported_and_the_rest_goes_on(installation: Installation, receiver: Receiver) -> None:
    caller = await create_caller_without_providers(await installation.start(OLD))
    assert (await caller.send("PUT", "/v1/integrations", {"webhook_secret": "s3cret"})).status == 200
    lost = await installation.start(NEW)
    status, readiness = await get_readiness(lost)
    assert (status, readiness["status"]) == (200, "degraded")
    assert readiness["secret_keys"] == f"missing {OLD_FINGERPRINT}"
    newcomer = await create_caller_without_providers(lost)
    assert (await newcomer.post("/v1/webhook-endpoints", {"url": f"{receiver.url}/new"})).status == 201

    operator = installation.build_operator(NEW)
    diagnosis = json.loads(operator.run("doctor", "--json").stdout)
    finding = next(found for found in diagnosis["findings"] if found["what"] == f"secret key {OLD_FINGERPRINT}")
    assert not finding["ok"]
    assert "add it to SWITCHBOARD_SECRET_KEYS" in finding["advice"]
    rotation_result = operator.run("keys", "rotate")
    assert rotation_result.returncode == 1
    assert f"{OLD_FINGERPRINT}: " in rotation_result.stdout
    assert "MISSING" in rotation_result.stdout

    assert installation.build_operator(NEW, OLD).run("keys", "rotate").returncode == 0
    assert (await get_readiness(await installation.start(NEW)))[1]["status"] == "ok"


async def test_an_interrupted_rotation_continues_in_batches(installation: Installation, receiver: Receiver) -> None:
    before = await installation.start(OLD)
    callers = [await create_caller(before), await create_caller(before)]
    for caller in callers:
        await create_secret_values(caller, f"{receiver.url}/hook")
        for number in range(5):
            await caller.send("POST", "/v1/agents", {"name": "x"}, Idempotency_Key=f"request {number}")
    runtime = await installation.start(NEW, OLD)
    interrupted = rotate_keys(runtime.database, runtime.keyring, batch=2)
    await anext(interrupted)
    await interrupted.aclose()
    rest = [result async for result in rotate_keys(runtime.database, runtime.keyring, batch=2)]
    assert sum(result.rewritten for result in rest) > 0
    assert not any(result.unreadable for result in rest)
    after = await installation.start(NEW)
    assert (await get_readiness(after))[1]["status"] == "ok"
    for caller in callers:
        await repeat_request(connect(after, caller))


async def test_requests_succeed_during_a_rotation(installation: Installation, receiver: Receiver) -> None:
    caller = await create_caller(await installation.start(OLD))
    await create_secret_values(caller, f"{receiver.url}/hook")
    runtime = await installation.start(NEW, OLD)
    serving = connect(runtime, caller)

    async def rotate() -> int:
        return sum([result.rewritten async for result in rotate_keys(runtime.database, runtime.keyring)])

    async def change(number: int) -> int:
        secret = {"webhook_secret": f"s3cret {number}"}
        kept = await serving.send("PUT", "/v1/integrations", secret, Idempotency_Key=f"change {number}")
        return kept.status

    rotated, *statuses = await asyncio.gather(rotate(), *(change(number) for number in range(20)))
    assert rotated > 0
    assert set(statuses) == {200}
    assert json.loads(installation.build_operator(NEW, OLD).run("keys", "rotate", "--json").stdout)["remaining"] == 0
