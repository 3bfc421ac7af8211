"""Credentials of browsers (https://developers.telnyx.com/development/webrtc/auth/telephony-credentials).

Telnyx keeps a credential until it is deleted, also an expired one, and a token needs one. So an identity has one, which
each of its tokens prolongs. A client is rung at the SIP address of its credential.
"""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.retries import ignore_missing

from switchboard_telephony_telnyx.errors import ignore_refusal
from switchboard_telephony_telnyx.transport import call_telnyx, read_telnyx

TOKEN_SECONDS: Final = 3600


async def create_credential_token(credentials: Any, connection_id: str, identity: str) -> str:
    """Return a token of an identity, and delete its expired credentials. Raises `ProviderError`.

    `credentials` is the resource of the SDK.
    """
    expires_at = (datetime.now(UTC) + timedelta(seconds=TOKEN_SECONDS)).isoformat(timespec="seconds")
    credential_id = None
    for known in await _list_credentials(credentials, connection_id, identity):
        if _is_expired(known):
            with ignore_missing():
                await call_telnyx(partial(credentials.delete, known.id))
        elif credential_id is None:
            with ignore_refusal():  # by a credential that Telnyx no longer prolongs
                await call_telnyx(partial(credentials.update, known.id, expires_at=expires_at))
                credential_id = known.id
    if credential_id is None:
        given = {"connection_id": connection_id, "name": identity, "expires_at": expires_at}
        credential_id = await read_telnyx(lambda: credentials.create(**given), "id")
    return str(await call_telnyx(lambda: credentials.create_token(credential_id)))


async def find_client_address(credentials: Any, connection_id: str, identity: str) -> str:
    """Return the SIP address of an identity. Raises `ProviderError` if it has no credential that is valid."""
    for known in await _list_credentials(credentials, connection_id, identity):
        if not _is_expired(known) and known.sip_username:
            return f"sip:{known.sip_username}@sip.telnyx.com"
    raise ProviderError("the client has no token that is valid", code="client_unavailable", retryable=False)


async def _list_credentials(credentials: Any, connection_id: str, identity: str) -> list[Any]:
    wanted = {"name": identity, "resource_id": f"connection:{connection_id}"}
    found = await read_telnyx(lambda: credentials.list(filter=wanted))
    return [known for known in found if known.name == identity]


def _is_expired(credential: Any) -> bool:
    """Return whether a credential can only be deleted. Telnyx sets `expired` some time after `expires_at`."""
    if credential.expired or not credential.expires_at:
        return bool(credential.expired)
    expires_at = datetime.fromisoformat(credential.expires_at)
    return (expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)) <= datetime.now(UTC)
