"""What the endpoints of one application share, found through the application so that nothing is global."""

from dataclasses import dataclass
from typing import cast

from quart import current_app

from switchboard.database import Database
from switchboard.keyring import KeyRing
from switchboard.web.limits import RateLimiter
from switchboard.web.principal import Resolver

EXTENSION = "switchboard.web"


@dataclass(frozen=True, slots=True)
class WebContext:
    """What every endpoint needs: transactions, rate limits, how a credential is resolved, and the keys for answers that are kept."""

    database: Database
    limiter: RateLimiter
    resolve: Resolver
    keyring: KeyRing


def web_context() -> WebContext:
    """The context of the application that serves the current request."""
    return cast("WebContext", current_app.extensions[EXTENSION])
