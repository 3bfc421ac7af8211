"""Principals, scopes, and rate limits."""

from dataclasses import dataclass
from typing import Final
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
ROLES: Final = ("viewer", "agent", "builder", "owner")
"""Roles of members. Each may do everything that those before it may (docs/decisions/0079-roles.md)."""
_SCOPES_BEYOND_READING: Final = {
    "agent": {"calendar:write", "calls:write", "contacts:write", "sms:write"},
    "builder": {"agents:write", "campaigns:write", "webhooks:read"},
    "owner": {"billing:read", "phone-numbers:write", "privacy:write", "webhooks:write"},
}


def get_least_role(scope: str) -> str:
    """Return the least role that has a scope. Applications cannot get it from users with a lesser one either."""
    return next((role for role, scopes in _SCOPES_BEYOND_READING.items() if scope in scopes), "viewer")


def includes_role(role: str, needed: str) -> bool:
    """Return whether a member's role is at least another one."""
    return ROLES.index(role) >= ROLES.index(needed)


def get_role_scopes(role: str) -> frozenset[str]:
    """Return the scopes that a member's role has."""
    return frozenset(scope for scope in SCOPES if includes_role(role, get_least_role(scope)))


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: average requests per second, and the burst."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Principal:
    """A valid credential: its organization, scopes, and rate limits. `actor` names it in the audit log.
    The API refuses a credential of a suspended organization, and requests that write of one that is being moved.
    """

    organization_id: UUID
    credential_id: UUID
    actor: str
    scopes: frozenset[str]
    read_limit: Limit
    write_limit: Limit
    is_suspended: bool = False
    is_moving: bool = False

    @property
    def is_user(self) -> bool:
        """True if a user acts, in the dashboard or through an application; False for an API key."""
        return self.actor.startswith("user:")

    @property
    def user_id(self) -> UUID | None:
        """The user who acts, in the dashboard or through an application; None for an API key."""
        return UUID(self.actor.removeprefix("user:").partition(" ")[0]) if self.is_user else None

    def require_scope(self, scope: str, *, purpose: str = "This") -> None:
        """Raise `InsufficientScope` without the scope. `purpose` names the part of the request that needs it."""
        if scope not in self.scopes:
            raise InsufficientScope(scope, purpose=purpose)
