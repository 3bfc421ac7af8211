"""Tickets to the socket of a live call: random, for one use within half a minute, kept in Redis as their hash only.

Whoever holds one may do what it says in the name of the user that it was minted for. A ticket that Redis has lost is refused; the page asks
for another.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import TypeAdapter
from redis.exceptions import RedisError

from switchboard.engine.conversation.call import Supervisor
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import InvalidState, Unavailable
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.states import is_over
from switchboard.runtime import Runtime

TICKET_SECONDS = 30
PREFIX = "/live/"

TicketAccess = Literal["transcript", "listen", "control"]


@dataclass(frozen=True, slots=True)
class LiveTicket:
    """`url` is the socket's address, `ws://` or `wss://`, the ticket in its path."""

    url: str
    expires_in_seconds: int


@dataclass(frozen=True, slots=True)
class TicketGrant:
    """What a ticket is for: `transcript` follows what is said, `listen` hears it too, `control` may also whisper, take over and hang up."""

    organization_id: UUID
    call_id: UUID
    person: Supervisor
    allows: TicketAccess
    browser: UUID | None = None


_grant: TypeAdapter[TicketGrant] = TypeAdapter(TicketGrant)


async def mint_ticket(
    runtime: Runtime,
    session: TenantSession,
    call_id: UUID,
    person: Supervisor,
    allows: TicketAccess,
    *,
    browser: UUID | None = None,
) -> LiveTicket:
    """A ticket to one of the session's organization's calls, which may still be ringing.

    Whoever asks has seen to it that the person may do this. `browser` is the session in which they are signed in: its end, or that of their
    membership, ends the socket too. Raises `NotFound` for an unknown call, `InvalidState` for one that is over or goes on
    without an agent, `Unavailable` while Redis is away.
    """
    call = await calls.get_call(session, call_id)
    if is_over(call) or call.agent_id is None or call.transferred_to is not None:
        raise InvalidState("The call is not live: it is over, or was forwarded.")
    token = secrets.token_urlsafe(32)
    grant = TicketGrant(call.organization_id, call.id, person, allows, browser)
    try:
        await runtime.redis.set(_key(token), _grant.dump_json(grant), ex=TICKET_SECONDS)
    except (RedisError, OSError) as error:
        raise Unavailable("Live calls cannot be followed at the moment; try again.") from error
    record_audit(session, AuditAction.CALL_MONITORED, call.id)
    scheme, _, rest = runtime.settings.base_url.partition("://")
    return LiveTicket(f"{'wss' if scheme == 'https' else 'ws'}://{rest}{PREFIX}{token}", TICKET_SECONDS)


async def redeem_ticket(runtime: Runtime, token: str) -> TicketGrant | None:
    """What a ticket is for, once; None for one that is unknown, used or too old, and while Redis is away."""
    try:
        found = await runtime.redis.getdel(_key(token))
    except (RedisError, OSError):
        return None
    return _grant.validate_json(found) if found else None


def _key(token: str) -> str:
    return f"live:ticket:{hashlib.sha256(token.encode()).hexdigest()}"
