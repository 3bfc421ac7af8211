"""The parts of a process, built once at its start. Handlers, jobs, and sockets name those that they use."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar, cast

from quart import current_app
from redis.asyncio import Redis

from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.offers import VoiceCatalog
from switchboard.foundation.database import Database, ReadReplica
from switchboard.foundation.injection import Parts, resolve_parameters
from switchboard.foundation.jobs import Queue
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.foundation.object_store import ObjectStore
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk.registry import Registry

EXTENSION = "switchboard"
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a process. `node` identifies the process; `recordings_due` wakes its upload of recordings."""

    node: str
    settings: Settings
    database: Database
    replica: ReadReplica
    redis: Redis
    queue: Queue
    limiter: RateLimiter
    registry: Registry
    keyring: KeyRing
    providers: Providers
    voices: VoiceCatalog
    outbound: OutboundClient
    recordings: ObjectStore
    engine: CallEngine
    lease: LeaseKeeper
    lease_watch: LeaseWatch
    recordings_due: asyncio.Event

    @property
    def parts(self) -> Parts:
        """The parts by name, for functions that declare those that they use (`foundation/injection.py`)."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def call(self, function: Callable[..., ResultT], **arguments: object) -> ResultT:
        """Call a job, or build a service, with the parts that it names."""
        return function(**resolve_parameters(function, self.parts, arguments.keys()), **arguments)


def current_runtime() -> Runtime:
    """Return the runtime of the application that serves the current request."""
    return cast("Runtime", current_app.extensions[EXTENSION])
