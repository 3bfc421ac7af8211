"""What a process has: built once at its start, handed to jobs, found by routes through their application."""

import asyncio
from dataclasses import dataclass
from typing import cast

from quart import current_app
from redis.asyncio import Redis

from switchboard.conversation.engine import CallEngine
from switchboard.database import Database
from switchboard.keyring import KeyRing
from switchboard.outbound import OutboundClient
from switchboard.plugins.registry import Registry
from switchboard.providers.instances import Providers
from switchboard.providers.voices import Voices
from switchboard.settings import Settings
from switchboard.web.limits import RateLimiter
from switchboard.work import Queue

EXTENSION = "switchboard"


@dataclass(frozen=True, slots=True)
class Runtime:
    """A process's parts. `node` names the process among all of them; `deliveries_due` and `runs_due` have its worker look at once."""

    node: str
    settings: Settings
    database: Database
    redis: Redis
    queue: Queue
    limiter: RateLimiter
    registry: Registry
    keyring: KeyRing
    providers: Providers
    voices: Voices
    outbound: OutboundClient
    engine: CallEngine
    deliveries_due: asyncio.Event
    runs_due: asyncio.Event


def current_runtime() -> Runtime:
    """The runtime of the application that serves the current request."""
    return cast("Runtime", current_app.extensions[EXTENSION])
