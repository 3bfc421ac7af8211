"""Tickets to the socket of a live call: random, for one use within half a minute, stored in Redis as their hash only.

The holder of a ticket may do what it grants, in the name of its user. A ticket that Redis has lost is refused; the page
asks for another.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import TypeAdapter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.call import Supervisor
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import WriteSession
from switchboard.foundation.redis_client import HASH_TAG
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import InvalidState, Unavailable
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.states import is_over

TICKET_SECONDS = 30
PREFIX = "/live/"

TicketAccess = Literal["transcript", "listen", "control"]


@dataclass(frozen=True, slots=True)
class LiveTicket:
    """Ticket with its lifetime. `url` is the socket's address, `ws://` or `wss://`, with the ticket in its path."""

    url: str
    expires_in_seconds: int


@dataclass(frozen=True, slots=True)
class TicketGrant:
    """Access that a ticket gives.

    `transcript` follows the transcript, `listen` also hears the audio, and `control` may also whisper, take over, and
    hang up. `browser` is the session in which the user is signed in.
    """

    organization_id: UUID
    call_id: UUID
    supervisor: Supervisor
    access: TicketAccess
    browser: UUID | None = None


_grant: TypeAdapter[TicketGrant] = TypeAdapter(TicketGrant)


@dataclass(frozen=True, slots=True)
class TicketMint:
    settings: Settings
    redis: Redis

    async def mint_ticket(
        self,
        session: WriteSession,
        call_id: UUID,
        supervisor: Supervisor,
        access: TicketAccess,
        *,
        browser: UUID | None = None,
    ) -> LiveTicket:
        """Mint a ticket to one of the organization's calls, which may still be ringing.

        The caller has checked that the user may have this access. `browser` is the session in which the user is signed
        in: the socket closes when it ends, or when the user's membership ends. Raises `NotFound` for an unknown call,
        `InvalidState` for a call that is over or goes on without an agent, and `Unavailable` while Redis is.
        """
        call = await get_row(session, Call, call_id)
        if is_over(call) or call.agent_id is None or call.transferred_to is not None or call.carrier == CHAT:
            raise InvalidState("The call is not live: it is over, was forwarded, or is a chat.")
        token = secrets.token_urlsafe(32)
        grant = TicketGrant(call.organization_id, call.id, supervisor, access, browser)
        try:
            await self.redis.set(_key(token), _grant.dump_json(grant), ex=TICKET_SECONDS)
        except (RedisError, OSError) as error:
            raise Unavailable("Live calls cannot be followed at the moment; try again.") from error
        record_audit(session, AuditAction.CALL_MONITORED, call.id)
        return LiveTicket(self.settings.build_socket_url(f"{PREFIX}{token}"), TICKET_SECONDS)


async def redeem_ticket(redis: Redis, token: str) -> TicketGrant | None:
    """Return the access of a ticket, once; None if it is unknown, used, or expired, and while Redis is unavailable."""
    try:
        found = await redis.getdel(_key(token))
    except (RedisError, OSError):
        return None
    return _grant.validate_json(found) if found else None


def _key(token: str) -> str:
    return f"{HASH_TAG}:ticket:{hashlib.sha256(token.encode()).hexdigest()}"
