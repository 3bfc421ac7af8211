"""Error responses as problem documents, with the request's id and without details of crashes."""

import re
import time
from http import HTTPStatus

import structlog
from quart import Quart, Response, g, request
from sqlalchemy.exc import SQLAlchemyError
from uuid_utils.compat import uuid7
from werkzeug.exceptions import HTTPException

from switchboard.foundation.database import OrganizationFrozen, is_database_away, is_refused_value
from switchboard.foundation.keyring import SecretError
from switchboard.foundation.observability import metrics, traces
from switchboard.foundation.web.errors import (
    AmbiguousLength,
    ApiError,
    MethodNotAllowed,
    NotFound,
    OrganizationMoving,
    PayloadTooLarge,
    Problem,
    Unavailable,
    ValidationFailed,
)

logger = structlog.get_logger()
PROBES = ("/healthz", "/readyz", "/metrics")
"""Paths that machines ask for every few seconds; their requests are logged at DEBUG and not traced."""
RETRY_AFTER = "5"
"""Seconds after which a request is tried again that the database did not answer, or whose lock did not come free."""
REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


def problem(error: ApiError) -> Response:
    """Return the response of an error."""
    body = Problem(
        type="about:blank",
        title=error.title,
        status=error.status,
        detail=error.detail,
        code=error.code,
        errors=error.errors,
        request_id=g.get("request_id", ""),
        **error.extensions,
    )
    return Response(body.model_dump_json(), error.status, error.headers, content_type="application/problem+json")


def install(app: Quart) -> None:
    """Install request ids, the access log, and error responses."""
    app.before_request(_begin)

    @app.after_request
    async def finish(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        if request.path.startswith("/v1/"):
            response.headers.setdefault("Cache-Control", "no-store")
        response.headers.update(g.get("rate_limit_headers", {}))
        operation, seconds = request.endpoint or "unknown", time.perf_counter() - g.began
        metrics.http_requests.labels(operation, response.status_code).inc()
        metrics.http_seconds.labels(operation).observe(seconds)
        if g.trace is not None:
            g.trace.end(response.status_code)
        log = logger.debug if request.path in PROBES else logger.info
        log(
            "request",
            method=request.method,
            path=_get_route(),
            status=response.status_code,
            ms=round(seconds * 1000, 1),
        )
        return response

    @app.errorhandler(Exception)
    async def respond(error: Exception) -> Response:
        return problem(_translate(error))


def _translate(error: Exception) -> ApiError:
    """Return the API's error for any error, and log what is not the client's fault."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return translate_http_error(error)
    if isinstance(error, SQLAlchemyError):
        return translate_database_error(error)
    if isinstance(error, OSError | SecretError):
        logger.exception("a server cannot be reached, or a key is missing")
        return Unavailable()
    logger.exception("request failed")
    return ApiError()


async def _begin() -> None:
    """Begin a request: its id, its trace, and the fields of its log lines. Raises `AmbiguousLength`."""
    given = request.headers.get("X-Request-Id", "")  # a proxy's, or a client's, if it may stand in a log line
    g.request_id = given if REQUEST_ID.fullmatch(given) else str(uuid7())
    g.began = time.perf_counter()
    structlog.contextvars.clear_contextvars()
    traceparent = request.headers.get("traceparent", "")
    g.trace = (
        None if request.path in PROBES else traces.RequestTrace(request.method, _get_route(), traceparent=traceparent)
    )
    structlog.contextvars.bind_contextvars(request_id=g.request_id, **(g.trace.log_fields if g.trace else {}))
    if "Content-Length" in request.headers and "Transfer-Encoding" in request.headers:
        raise AmbiguousLength


def _get_route() -> str:
    """Return the path of the request with the names of its parts instead of their values."""
    return request.url_rule.rule if request.url_rule else "(unknown)"


def translate_database_error(error: SQLAlchemyError) -> ApiError:
    """Return the API's error for one of the database, and log what is not the client's fault."""
    if isinstance(error, OrganizationFrozen):
        return OrganizationMoving()
    if is_refused_value(error):
        return ValidationFailed("The request has a value that cannot be stored, such as text with NUL.")
    logger.exception("database error")
    return Unavailable(headers={"Retry-After": RETRY_AFTER}) if is_database_away(error) else ApiError()


def translate_http_error(error: HTTPException) -> ApiError:
    """Return the API's error for one that the framework raised."""
    if error.code == HTTPStatus.METHOD_NOT_ALLOWED:
        allow = ", ".join(sorted(getattr(error, "valid_methods", None) or []))
        return MethodNotAllowed(f"This path answers {allow}.", headers={"Allow": allow})
    if error.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return PayloadTooLarge()
    if error.code == HTTPStatus.NOT_FOUND:
        return NotFound("There is no such path.")
    logger.warning("unexpected HTTP error", status=error.code)
    return ApiError(error.description)
