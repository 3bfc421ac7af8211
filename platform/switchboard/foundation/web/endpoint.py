"""The one decorator of every API endpoint: credential, limit, scope, validation, transaction, idempotency, audit, answer.

    @blueprint.post("/v1/calls")
    @endpoint(scope="calls:write", body=CallCreate, answer=CallOut, status=201, errors=[InvalidState])
    async def create_call(session: TenantSession, data: CallCreate) -> CallOut:
        \"\"\"Start an outbound call.\"\"\"

A handler takes what it names: `session` (one transaction of the caller's organization, committed after the answer was built, rolled back by
any error), `principal`, `data` (the body), `query`, and the path's ids as UUIDs. It returns a value of `answer`, or a `Response` of its own.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias
from uuid import UUID

import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError
from quart import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.context import web_context
from switchboard.foundation.web.errors import (
    ApiError,
    InsufficientScope,
    InvalidCredentials,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    UnsupportedMediaType,
    ValidationFailed,
)
from switchboard.foundation.web.idempotency import IdempotentRequest, KeptAnswer, idempotent, recall, remember
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.rate_limits import headers
from switchboard.foundation.web.schemas import parse_id

Handler: TypeAlias = Callable[..., Awaitable[object]]
MAX_BODY_BYTES = 8 * 1024 * 1024
LONG_BODY_BYTES = 128 * 1024
CREATED = 201


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What an endpoint declares; the OpenAPI document and the house tests are made from it. `scope` None needs no credential."""

    name: str
    summary: str
    description: str
    scope: str | None
    body: type[BaseModel] | None
    body_required: bool
    query: type[BaseModel] | None
    answer: object
    status: int
    media_type: str
    errors: tuple[type[ApiError], ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """One request on its way through."""

    endpoint: Endpoint
    wanted: frozenset[str]
    handler: Handler
    adapter: TypeAdapter[object]


def endpoint(  # noqa: PLR0913 - a declaration: each part is named where it is used
    *,
    scope: str,
    answer: object,
    status: int = 200,
    body: type[BaseModel] | None = None,
    query: type[BaseModel] | None = None,
    media_type: str = "application/json",
    errors: Sequence[type[ApiError]] = (),
) -> Callable[[Handler], Callable[..., Awaitable[Response]]]:
    """Make a handler an endpoint. `errors` are those beyond the ones that every endpoint can answer."""

    def decorate(handler: Handler) -> Callable[..., Awaitable[Response]]:
        summary, _, description = inspect.cleandoc(handler.__doc__ or "").partition("\n\n")
        required = body is not None and any(field.is_required() for field in body.model_fields.values())
        declared = Endpoint(
            handler.__name__,
            summary,
            description,
            scope,
            body,
            required,
            query,
            answer,
            status,
            media_type,
            tuple(errors),
        )
        call = _Call(declared, frozenset(inspect.signature(handler).parameters), handler, _adapter(answer))

        @wraps(handler)
        async def serve(**path: str) -> Response:
            return await _serve(call, path)

        serve.endpoint = declared  # type: ignore[attr-defined]
        return serve

    return decorate


def _adapter(answer: Any) -> TypeAdapter[object]:
    return TypeAdapter(answer)


async def _serve(call: _Call, path: Mapping[str, str]) -> Response:
    principal = await _admit(call.endpoint)
    arguments: dict[str, object] = {"principal": principal, **_ids(path)}
    if call.endpoint.query is not None or request.query_string:
        arguments["query"] = _query(call.endpoint.query)
    raw = await _raw_body()
    if call.endpoint.body is not None:
        parsed = call.endpoint, raw, request.mimetype
        # A long body takes its time; calls whose audio this process carries must not wait for it.
        arguments["data"] = await asyncio.to_thread(_body, *parsed) if len(raw) > LONG_BODY_BYTES else _body(*parsed)
    async with AsyncExitStack() as stack:
        replay = _idempotent(principal, raw)
        if replay is not None or "session" in call.wanted:
            arguments["session"] = await stack.enter_async_context(
                web_context().database.tenant(principal.organization_id, actor=principal.actor)
            )
        return await _answer(call, arguments, replay)


async def _answer(call: _Call, arguments: dict[str, object], replay: IdempotentRequest | None) -> Response:
    session = arguments.get("session")
    if replay is not None and isinstance(session, TenantSession):
        kept = await recall(session, replay, web_context().keyring)
        if kept is not None:
            return Response(
                kept.body, kept.status, {"Idempotent-Replayed": "true"}, content_type=call.endpoint.media_type
            )
    result = await call.handler(**{name: value for name, value in arguments.items() if name in call.wanted})
    await _audit(call.endpoint, arguments, result)
    if isinstance(result, Response):
        return result
    content = b"" if call.endpoint.answer is None else call.adapter.dump_json(result, by_alias=True)
    if replay is not None and isinstance(session, TenantSession):
        remember(session, replay, KeptAnswer(call.endpoint.status, content), web_context().keyring)
    return Response(content, call.endpoint.status, content_type=call.endpoint.media_type if content else None)


async def _audit(declared: Endpoint, arguments: Mapping[str, object], result: object) -> None:
    """Note who changed what: the path, what was created, the names of the fields that were given, and never a value."""
    principal, data, session = (arguments.get(name) for name in ("principal", "data", "session"))
    if not isinstance(principal, Principal) or not (declared.scope or "").endswith(":write") or request.method == "GET":
        return
    made = str(getattr(result, "id", "")) if declared.status == CREATED else ""
    fields = ", ".join(sorted(data.model_fields_set)) if isinstance(data, BaseModel) else ""
    subject = " ".join(part for part in (request.path.removeprefix("/v1/"), made, fields) if part)
    context = web_context()
    if isinstance(session, TenantSession):
        context.audit(session, principal, declared.name, subject)
        return
    async with context.database.tenant(principal.organization_id) as own:
        context.audit(own, principal, declared.name, subject)


async def _admit(declared: Endpoint) -> Principal:
    context = web_context()
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    principal = await context.resolve(credential.strip()) if kind.lower() == "bearer" and credential.isascii() else None
    if principal is None:
        raise InvalidCredentials(was_sent=kind.lower() == "bearer" and bool(credential))
    structlog.contextvars.bind_contextvars(organization_id=str(principal.organization_id))
    limit = principal.read_limit if request.method == "GET" else principal.write_limit
    verdict = await context.limiter.check(declared.name, str(principal.credential_id), limit)
    if verdict.revoked:
        raise InvalidCredentials(was_sent=True)
    g.rate_limit_headers = headers(limit, verdict)
    if not verdict.allowed:
        raise RateLimited
    if declared.scope is not None and declared.scope not in principal.scopes:
        raise InsufficientScope(declared.scope)
    return principal


def _ids(path: Mapping[str, object]) -> dict[str, UUID]:
    ids = {name: parse_id(str(value)) for name, value in path.items()}
    return {name: value if value is not None else _unknown() for name, value in ids.items()}


def _unknown() -> UUID:
    raise NotFound


def _query(model: type[BaseModel] | None) -> BaseModel | None:
    values: dict[str, str | list[str]] = {}
    for name, items in request.args.lists():
        values[name] = items[0] if len(items) == 1 else items
    if model is None:
        raise ValidationFailed.field(next(iter(values), "query"), "this endpoint takes no query parameters")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValidationFailed.of(error) from None


async def _raw_body() -> bytes:
    try:
        return await request.get_data(as_text=False, cache=False, parse_form_data=False)
    except RequestEntityTooLarge:
        raise PayloadTooLarge from None


def _body(declared: Endpoint, raw: bytes, mimetype: str) -> BaseModel:
    model = declared.body
    if model is None:
        raise ValidationFailed
    if raw and mimetype != "application/json" and not mimetype.endswith("+json"):
        raise UnsupportedMediaType
    try:
        return model.model_validate_json(raw or b"{}")
    except ValidationError as error:
        raise ValidationFailed.of(error) from None


def _idempotent(principal: Principal, raw: bytes) -> IdempotentRequest | None:
    key = request.headers.get("Idempotency-Key")
    if key is None or request.method != "POST":
        return None
    line = f"{request.method} {request.path}?{request.query_string.decode('latin-1')}"
    return idempotent(principal.organization_id, key, request_line=line, body=raw)
