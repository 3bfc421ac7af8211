"""Health endpoints: `/healthz` (the process runs), `/readyz` (it can serve), and `/metrics` for Prometheus."""

from contextlib import suppress

from quart import Blueprint, Response
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.observability import metrics
from switchboard.resources.deliveries import system_queries
from switchboard.runtime import current_runtime

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
async def healthz() -> dict[str, str]:
    """Report that the process responds."""
    return {"status": "ok"}


@blueprint.get("/readyz")
async def readyz() -> tuple[dict[str, str], int]:
    """Report whether database and Redis respond; a 503 names the one that does not."""
    parts = {"database": await _database(), "redis": await _redis()}
    ready = set(parts.values()) == {"ok"}
    return {"status": "ok" if ready else "unavailable", **parts}, 200 if ready else 503


@blueprint.get("/metrics")
async def show_metrics() -> Response:
    """Serve this process's metrics, and the age of the delivery queue."""
    with suppress(SQLAlchemyError, OSError):
        metrics.delivery_queue_age.set(await system_queries.measure_queue_age(current_runtime().database))
    return Response(metrics.render_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")


async def _database() -> str:
    try:
        await current_runtime().database.ping()
    except (SQLAlchemyError, OSError):
        return "unavailable"
    return "ok"


async def _redis() -> str:
    try:
        await current_runtime().redis.time()
    except (RedisError, OSError):
        return "unavailable"
    return "ok"
