"""Health endpoints: `/healthz` (the process runs), `/readyz` (it can serve), and `/metrics` for Prometheus."""

import asyncio
import hmac
import shutil
from collections.abc import Awaitable
from contextlib import suppress
from http import HTTPStatus

from quart import Blueprint, Quart, Response, request
from redis.asyncio import Redis
from redis.exceptions import RedisError
from redis.observability.attributes import DB_CLIENT_CONNECTION_STATE
from sqlalchemy.exc import SQLAlchemyError

from switchboard.apps.server.web_context import add_context
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database, DatabaseCheck, ReadReplica, ReplicaNotUsable
from switchboard.foundation.encryption.rotation import KeyCheck
from switchboard.foundation.observability import metrics
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.client_addresses import is_loopback, is_loopback_url
from switchboard.foundation.web.pipeline import inject
from switchboard.resources.calls.recordings.spool import measure_spool
from switchboard.resources.deliveries.queries import measure_queue_age
from switchboard.runtime import Runtime

DATABASE_SECONDS = 2.0
blueprint = Blueprint("health", __name__)


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
    parts["secret_keys"] = await _check_keys(key_check)
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


async def _check_keys(key_check: KeyCheck) -> str:
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            missing = await key_check.list_missing_keys()
    except (SQLAlchemyError, OSError):
        return "unknown"
    return f"missing {', '.join(missing)}" if missing else "ok"


def create_health_app(parts: Runtime) -> Quart:
    """Create the application of a process that serves only the health endpoints."""
    app = Quart("switchboard")
    app.register_blueprint(blueprint)
    add_context(app, parts)
    return app
