"""Objects that the endpoints of one application share, found through the application so that nothing is global."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from quart import current_app

from switchboard.foundation.database import Database, ReadReplica
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.principal import Resolver
from switchboard.foundation.web.rate_limits import RateLimiter

EXTENSION = "switchboard.web"


@dataclass(frozen=True, slots=True)
class WebContext:
    """Transactions, reads from a replica, rate limits, credential lookup, and the keys that encrypt stored responses.

    `resolved` holds the parts and services of the process that each handler names as arguments.
    """

    database: Database
    replica: ReadReplica
    limiter: RateLimiter
    resolve: Resolver
    keyring: KeyRing
    resolved: Mapping[Callable[..., Awaitable[object]], Mapping[str, object]]


def web_context() -> WebContext:
    """Return the context of the application that serves the current request."""
    return cast("WebContext", current_app.extensions[EXTENSION])
