"""What the endpoints of one application share, found through the application so that nothing is global."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from quart import current_app

from switchboard.foundation.database import Database, TenantSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.principal import Principal, Resolver
from switchboard.foundation.web.rate_limits import RateLimiter

EXTENSION = "switchboard.web"

Audit: TypeAlias = Callable[[TenantSession, Principal, str, str], None]
"""Writes into an organization's audit log what a principal did (`start_campaign`) to what (`campaigns/<id>/start`)."""


@dataclass(frozen=True, slots=True)
class WebContext:
    """What every endpoint needs: transactions, rate limits, how a credential is resolved, keys for answers that are kept, who did what."""

    database: Database
    limiter: RateLimiter
    resolve: Resolver
    keyring: KeyRing
    audit: Audit


def web_context() -> WebContext:
    """The context of the application that serves the current request."""
    return cast("WebContext", current_app.extensions[EXTENSION])
