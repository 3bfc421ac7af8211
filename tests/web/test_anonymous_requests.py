"""Work for anybody: each path that needs no credential is listed here with its cost, and is cheap or limited."""

import time
from uuid import uuid4

import pytest
from quart import Quart
from switchboard.apps.server.app import create_routes
from switchboard.resources.identity.passwords import HASHER
from switchboard.runtime import Runtime

from tests.fixtures.app import Client

CHEAP = {
    "GET /",
    "GET /.well-known/oauth-authorization-server",
    "GET /dashboard/<path:nowhere>",
    "GET /dashboard/forgotten-password",
    "GET /dashboard/logos/<uuid:organization_id>/<digest>",
    "GET /dashboard/organizations",
    "GET /dashboard/sign-in",
    "GET /dashboard/sign-in/callback",
    "GET /dashboard/sign-in/passkey",
    "GET /dashboard/static/<path:filename>",
    "GET /demo/<public_key>",
    "GET /docs",
    "GET /docs/<path:page>",
    "GET /docs/static/<path:filename>",
    "GET /exports/<token>",
    "GET /healthz",
    "GET /metrics",
    "GET /oauth/authorize",
    "GET /openapi.json",
    "GET /readyz",
    "GET /recordings/<token>",
    "GET /sms-media/<token>",
    "GET /static/<path:filename>",
    "GET /widget/<public_key>/frame",
    "GET /widget/static/<path:filename>",
    "GET /widget/v1.js",
    "POST /dashboard/organizations/<organization_id>",
    "POST /dashboard/sign-out",
    "POST /oauth/authorize",
}
"""At most 20 ms of processor time."""
SIGNED = {
    f"{method} /carriers/<provider:carrier>/<organization_id>/{kind}{rest}"
    for method in ("GET", "POST")
    for kind in ("calls/<call_id>", "events", "texts/<message_id>")
    for rest in ("", "/<path:path>")
} | {"POST /calendars/<provider:provider>/<organization_id>/<calendar_id>"}
"""As cheap; the carrier's signature, or the secret of a calendar's watch, is checked before anything else."""
LIMITED = {
    "GET /dashboard/invitations/<token>",
    "GET /dashboard/new-password/<token>",
    "GET /dashboard/sign-in/single-sign-on",
    "GET /widget/<public_key>/messages",
    "POST /api/oauth/revoke",
    "POST /api/oauth/token",
    "POST /dashboard/forgotten-password",
    "POST /dashboard/invitations/<token>",
    "POST /dashboard/new-password/<token>",
    "POST /dashboard/sign-in",
    "POST /dashboard/sign-in/code",
    "POST /widget/<public_key>/calls",
    "POST /widget/<public_key>/messages",
    "POST /dashboard/sign-in/passkey",
}
"""Limited by the client's address, before a password is hashed or another server is asked."""
MAX_SECONDS = 0.02
REQUESTS, MAX_ATTEMPTS = 10, 400
NO_PROVIDER = "GET /dashboard/sign-in/single-sign-on"


def list_anonymous(app: Quart) -> set[str]:
    """Return the operations that declare neither a scope nor a role."""
    found = set()
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        if not hasattr(view, "endpoint") and not hasattr(view, "page"):
            found |= {f"{method} {rule.rule}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    return found


def test_every_anonymous_operation_is_listed() -> None:
    assert list_anonymous(create_routes()) == CHEAP | SIGNED | LIMITED


async def send(client: Client, operation: str, address: str) -> int:
    method, _, rule = operation.partition(" ")
    path = "/".join(uuid4().hex if part.startswith("<") else part for part in rule.split("/"))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data = "email=a@b.example&password=wrong&grant_type=authorization_code"
    scope = {"client": (address, 0)}
    if method == "GET":
        response = await client.get(path, scope_base=scope)
    else:
        response = await client.post(path, data=data, headers=headers, scope_base=scope)
    await response.get_data(as_text=False)
    return response.status_code


@pytest.mark.parametrize("operation", sorted(CHEAP | SIGNED))
async def test_cheap_operations_cost_little(client: Client, operation: str) -> None:
    assert await send(client, operation, "192.0.2.1") != 500
    began = time.process_time()
    for _ in range(REQUESTS):
        await send(client, operation, "192.0.2.1")
    assert (time.process_time() - began) / REQUESTS < MAX_SECONDS


@pytest.mark.parametrize("operation", sorted(LIMITED - {NO_PROVIDER}))
async def test_costly_operations_are_limited(client: Client, operation: str) -> None:
    address = f"fd00:{uuid4().hex[:4]}:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"
    assert await send(client, operation, address) < 429
    for _ in range(MAX_ATTEMPTS):
        if await send(client, operation, address) == 429:
            return
    pytest.fail("nobody limits this")


async def test_a_password_is_hashed_only_for_an_invitation(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(HASHER), "hash")
    assert await send(client, "POST /dashboard/invitations/<token>", "192.0.2.2") == 404


async def test_the_api_reference_is_built_once_and_revalidated(client: Client, runtime: Runtime) -> None:
    for path in ("/openapi.json", "/docs"):
        first = await client.get(path)
        again = await client.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (first.status_code, again.status_code) == (200, 304)
        assert await again.get_data(as_text=False) == b""
