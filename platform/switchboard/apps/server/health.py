"""Health endpoints: `/healthz` (the process runs), `/readyz` (it can serve), and `/metrics` for Prometheus."""

import asyncio
import hmac
import shutil
import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Literal

from quart import Blueprint, Quart, Response, request
from redis.asyncio import Redis
from redis.exceptions import RedisError
from redis.observability.attributes import DB_CLIENT_CONNECTION_STATE
from sqlalchemy.exc import SQLAlchemyError

from switchboard.apps.server.web_context import add_context
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database, ReadReplica, ReplicaNotUsable
from switchboard.foundation.encryption.rotation import count_values_by_key
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.observability import metrics
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.client_addresses import is_loopback, is_loopback_url
from switchboard.foundation.web.pipeline import inject
from switchboard.resources.calls.recordings.spool import measure_spool
from switchboard.resources.deliveries.queries import measure_queue_age
from switchboard.runtime import Runtime

DATABASE_SECONDS = 2.0
SLOW_SECONDS: Final = 30.0
"""Time without an answer after which a slow database counts as unavailable. Shorter would turn a busy minute into an
outage: every process shares the database, so a balancer would take all of them out at once."""
VALID_SECONDS: Final = 300.0
blueprint = Blueprint("health", __name__)


@dataclass(slots=True)
class DatabaseCheck:
    """Asks the database whether it responds. A slow answer is not an outage."""

    database: Database
    _answered_at: float = field(init=False, default_factory=time.monotonic)

    async def run(self) -> Literal["ok", "slow", "unavailable"]:
        """Return `ok`, `slow` (no answer within two seconds, but within the last thirty), or `unavailable`."""
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                await self.database.ping()
        except TimeoutError:
            return "slow" if time.monotonic() - self._answered_at < SLOW_SECONDS else "unavailable"
        except (SQLAlchemyError, OSError):
            return "unavailable"
        self._answered_at = time.monotonic()
        return "ok"


@dataclass(slots=True)
class KeyCheck:
    """Asks the database for the keys that this process lacks, at the first question and every five minutes after,
    because probes come every second.
    """

    database: Database
    keyring: KeyRing
    _lock: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _missing: list[str] = field(init=False, default_factory=list)
    _valid_until: float = field(init=False, default=0.0)

    async def run(self) -> str:
        """Return `ok`, `missing` with the fingerprints of the keys, or `unknown` if the database does not answer."""
        try:
            async with asyncio.timeout(DATABASE_SECONDS), self._lock:
                if time.monotonic() >= self._valid_until:
                    counted = await count_values_by_key(self.database)
                    self._missing = sorted(counted.keys() - set(self.keyring.fingerprints))
                    self._valid_until = time.monotonic() + VALID_SECONDS
        except (SQLAlchemyError, OSError):
            return "unknown"
        return f"missing {', '.join(self._missing)}" if self._missing else "ok"


@blueprint.get("/healthz")
@inject
async def healthz(settings: Settings) -> dict[str, str]:
    """Report that the process responds, and its region if there is one."""
    return {"status": "ok"} | ({"region": settings.region} if settings.region else {})


@blueprint.get("/readyz")
@inject
async def readyz(
    database_check: DatabaseCheck, replica: ReadReplica, redis: Redis, engine: CallEngine, key_check: KeyCheck
) -> tuple[dict[str, str], int]:
    """Report whether this process can serve: 503 while the database does not respond, and while the process drains.

    Without Redis, without the read replica, without a key that encrypted some organization's secrets, and while the
    database is slow, it serves on, so it stays ready, and the status is `degraded`. A process that holds as many calls
    as it can stays ready too, for their sockets and for requests; `calls` is `full`.
    """
    parts: dict[str, str] = {"database": await database_check.run()}
    parts["redis"] = await _check(redis.time(), RedisError, OSError, failure="unavailable")
    if parts["database"] == "unavailable":
        return {"status": "unavailable", **parts}, 503
    if replica.is_configured:
        parts["read_database"] = await _check(replica.check(), ReplicaNotUsable, failure="not used: {error}")
    parts["secret_keys"] = await key_check.run()
    if engine.draining:
        return {"status": "draining", **parts}, 503
    status = "ok" if set(parts.values()) == {"ok"} else "degraded"
    return {"status": status, **parts, "calls": "full" if engine.is_full else "ok"}, 200


@blueprint.get("/metrics")
@inject
async def show_metrics(settings: Settings, database: Database, redis: Redis) -> Response:
    """Serve this process's metrics, the state of its pools and disk, and the age of the delivery queue.

    They cost the event loop 40 ms and name organizations, so they need `SWITCHBOARD_METRICS_TOKEN`. Without one they
    are for clients on the same machine, of an installation without a public address.
    """
    if not _may_read_metrics(settings):
        text = (
            "Send SWITCHBOARD_METRICS_TOKEN as a bearer token. Without one, metrics are for the same machine only, "
            "and not where SWITCHBOARD_PUBLIC_URL is set to an address of another machine.\n"
        )
        return Response(text, HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"}, content_type="text/plain")
    measure_pools(database, redis)
    await asyncio.to_thread(_measure_disk, settings)
    with suppress(SQLAlchemyError, OSError):
        # Not longer, even if the pool is exhausted: a scrape that takes ten seconds is lost.
        async with asyncio.timeout(DATABASE_SECONDS), database.system() as session:
            metrics.delivery_queue_age.set(await measure_queue_age(session))
    return Response(metrics.render_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _may_read_metrics(settings: Settings) -> bool:
    if settings.metrics_token is not None:
        expected = f"Bearer {settings.metrics_token.get_secret_value()}"
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected.encode())
    # A proxy on the same machine may add no header, and name this server by its own address. It has a public address,
    # though: one that is set, or the name that clients ask for.
    is_local = is_loopback_url(f"//{request.host}") and is_loopback_url(settings.public_url or "//localhost")
    forwarded = {"Forwarded", "X-Forwarded-For"} & set(request.headers.keys())
    return is_local and not forwarded and is_loopback(request.remote_addr or "")


def measure_pools(database: Database, redis: Redis) -> None:
    """Publish the state of this process's pools."""
    pool = database.pool
    metrics.pool_size.labels("database").set(pool.size())
    metrics.pool_connections.labels("database", "used").set(pool.checkedout())
    metrics.pool_connections.labels("database", "idle").set(pool.checkedin())
    metrics.pool_waiting.labels("database").set(database.waiting)
    for count, attributes in redis.connection_pool.get_connection_count():
        metrics.pool_connections.labels("redis", attributes[DB_CLIENT_CONNECTION_STATE]).set(count)


def _measure_disk(settings: Settings) -> None:
    with suppress(OSError):
        disk = shutil.disk_usage(settings.data_dir)
        metrics.disk_free.set(disk.free)
        metrics.disk_size.set(disk.total)
    metrics.spool_bytes.set(measure_spool(settings))


async def _check(check: Awaitable[object], *failures: type[Exception], failure: str) -> str:
    """Return `ok`, or the failure with its `{error}`."""
    try:
        await check
    except failures as error:
        return failure.format(error=error)
    return "ok"


def create_health_app(parts: Runtime) -> Quart:
    """Create the application of a process that serves only the health endpoints."""
    app = Quart("switchboard")
    app.register_blueprint(blueprint)
    add_context(app, parts)
    return app
