"""Every operation with each wrong credential: another scope, none, revoked, invented, or of another kind."""

from switchboard.foundation.web.principal import SCOPES

from tests.attack.http_client import HttpClient
from tests.attack.oauth_client import Application
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited
from tests.fixtures.openapi_places import Operation

GARBAGE = (None, "", "x", "svc_live_", "svc_live_" + "0" * 49, "svca_" + "0" * 49, "null", "' or 1=1 --")
"""Credentials of nobody; None sends no header."""


async def attack_scopes(scene: Scene, result: AttackResult) -> None:
    """Send each operation with a key of each single scope but its own, and with an application's narrow token."""
    victim = scene.victim
    application = Application(scene, scene.credentials.application)
    token = (await application.obtain_tokens(victim.owner, scope="agents:read"))["access_token"]
    holders = [(scope, await victim.create_key(scope)) for scope in SCOPES] + [("agents:read", token)]

    async def send(operation: Operation, holder: HttpClient, held: str) -> None:
        path, body = operation.fill(victim.find_id)
        answer = await holder.send(operation.method, path, body)
        refused = (answer.status, answer.json.get("code")) == (403, "insufficient_scope")
        result.check(refused, f"{operation.method} {path} with {held}", answer)

    await gather_limited(
        send(operation, victim.api.with_token(credential), scope)
        for scope, credential in holders
        for operation in victim.operations
        if operation.scope != scope
    )


async def attack_credentials(scene: Scene, result: AttackResult) -> None:
    """Send each operation without a valid credential."""
    victim = scene.victim
    revoked_key = await victim.create_key("agents:read")
    await victim.revoke_newest_key()
    application = Application(scene, scene.credentials.application)
    tokens = await application.obtain_tokens(victim.owner, scope="agents:read")
    await application.revoke(tokens["access_token"])
    changed = victim.credentials.api_key[:-1] + ("0" if victim.credentials.api_key[-1] != "0" else "1")

    async def send(operation: Operation, credential: str | None) -> None:
        path, body = operation.fill(victim.find_id)
        answer = await scene.nobody.with_token(credential).send(operation.method, path, body)
        refused = (answer.status, answer.json.get("code")) == (401, "invalid_credentials")
        result.check(refused, f"{operation.method} {path} with {credential!r}", answer)

    await gather_limited(
        send(operation, credential)
        for credential in (
            *GARBAGE,
            revoked_key,
            changed,
            *(tokens[name] for name in ("access_token", "refresh_token")),
        )
        for operation in victim.operations
    )
