"""The parts of a process: built once at its start, passed to jobs, and found by routes through their application."""

import asyncio
from dataclasses import dataclass
from typing import cast

from quart import current_app
from redis.asyncio import Redis

from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.voices import VoiceCatalog
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk.registry import Registry

EXTENSION = "switchboard"


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a process. `node` identifies the process; `deliveries_due` and `runs_due` wake its worker loops."""

    node: str
    settings: Settings
    database: Database
    redis: Redis
    queue: Queue
    limiter: RateLimiter
    registry: Registry
    keyring: KeyRing
    providers: Providers
    voices: VoiceCatalog
    outbound: OutboundClient
    engine: CallEngine
    deliveries_due: asyncio.Event
    runs_due: asyncio.Event


def current_runtime() -> Runtime:
    """Return the runtime of the application that serves the current request."""
    return cast("Runtime", current_app.extensions[EXTENSION])
