"""Principals, scopes, and rate limits."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from switchboard.foundation.web.errors import InsufficientScope

SCOPES: dict[str, str] = {
    "agents:read": "list and view agents",
    "agents:write": "create, update, delete agents",
    "calls:read": "list calls, transcripts, recordings",
    "calls:write": "initiate outbound calls",
    "phone-numbers:read": "list and view phone numbers",
    "phone-numbers:write": "purchase, update, release numbers",
    "sms:read": "list SMS conversations and messages",
    "sms:write": "send SMS",
    "contacts:read": "list and view contacts",
    "contacts:write": "create and update contacts",
    "campaigns:read": "list campaigns and their contacts",
    "campaigns:write": "create, edit and run outbound campaigns",
    "calendar:read": "view calendar integrations and availability",
    "calendar:write": "book appointments on connected calendars",
    "analytics:read": "view analytics and reports",
    "billing:read": "view balance and usage",
    "privacy:write": "export and erase what is known about a person",
    "webhooks:read": "list webhook configurations",
    "webhooks:write": "create and update webhook endpoints",
}
OWNERS_SCOPES = frozenset({"phone-numbers:write", "privacy:write", "webhooks:write"})
"""Scopes that only owners have: recurring costs, all data of a person, and sending all events elsewhere. Applications
cannot get them from members either.
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: average requests per second, and the burst."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Principal:
    """A valid credential: its organization, scopes, and rate limits. `actor` names it in the audit log.
    The API refuses a credential of a suspended organization.
    """

    organization_id: UUID
    credential_id: UUID
    actor: str
    scopes: frozenset[str]
    read_limit: Limit
    write_limit: Limit
    is_suspended: bool = False

    @property
    def is_user(self) -> bool:
        """True if a user acts, in the dashboard or through an application; False for an API key."""
        return self.actor.startswith("user:")

    def require_scope(self, scope: str, *, purpose: str = "This") -> None:
        """Raise `InsufficientScope` without the scope. `purpose` names the part of the request that needs it."""
        if scope not in self.scopes:
            raise InsufficientScope(scope, purpose=purpose)


class Resolver(Protocol):
    """Finds the principal of a bearer credential; None if it is invalid. The application injects it, so that `web`
    knows no tables.
    """

    async def __call__(self, credential: str) -> Principal | None: ...
