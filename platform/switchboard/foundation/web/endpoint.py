"""The decorator of every API endpoint: credential, rate limit, scope, validation, transaction, idempotency, response.

    @blueprint.post("/v1/calls")
    @endpoint(scope="calls:write", status=201, errors=[InvalidState])
    async def create_call(session: WriteSession, data: CallCreate) -> CallOut:
        \"\"\"Start an outbound call.\"\"\"

A handler receives the arguments that it names: `session` (one transaction of the caller's organization, committed after
the response is built, rolled back by any error), `principal`, `data` (the body), `query`, the path's ids as UUIDs, and
parts of the process such as `keyring`. It returns the answer, or a `Response` of its own.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any

import structlog
from opentelemetry import trace
from pydantic import BaseModel, TypeAdapter, ValidationError
from quart import Blueprint, Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.errors import (
    ApiError,
    InvalidCredentials,
    OrganizationMoving,
    OrganizationSuspended,
    PayloadTooLarge,
    RateLimited,
    UnsupportedMediaType,
    ValidationFailed,
)
from switchboard.foundation.web.idempotency import (
    IdempotentRequest,
    find_stored_response,
    identify_request,
    store_response,
)
from switchboard.foundation.web.pipeline import (
    Arguments,
    Handler,
    HandlerPipeline,
    open_write_session,
    parse_path,
    parse_query,
    web_context,
)
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.rate_limits import build_rate_limit_headers
from switchboard.foundation.web.schemas import READ_ONLY, Answer, Page, PartialBody

JSON = "application/json"
MAX_BODY_BYTES = 8 * 1024 * 1024
LONG_BODY_BYTES = 128 * 1024
LONG_BODY_THREAD = ThreadPoolExecutor(1, thread_name_prefix="long-bodies")
"""The allocator keeps up to 110 MB for each thread that has parsed a body of 8 MB, so one thread parses all."""


class ApiBlueprint(Blueprint):
    """A blueprint with the descriptions of the OpenAPI tags that its endpoints have: the first parts of their paths."""

    def __init__(self, name: str, import_name: str, *, tags: Mapping[str, str]) -> None:
        super().__init__(name, import_name)
        self.tags = tags


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint's declaration, from which the OpenAPI document is generated, with its handler and the serializer of
    its answer.

    `replica` endpoints only read, and a replica may answer them. Requests of an organization to endpoints with the same
    `turn` run one after the other in a process.
    """

    name: str
    summary: str
    description: str
    scope: str
    answer: object
    status: int
    media_types: Sequence[str]
    errors: tuple[type[ApiError], ...]
    replica: bool
    turn: str | None
    pipeline: HandlerPipeline
    adapter: TypeAdapter[object]

    @property
    def read_only_fields(self) -> frozenset[str]:
        """Fields of an update's response that its body cannot set, and may contain."""
        if not isinstance(self.answer, type) or self.pipeline.data is None:
            return frozenset()
        if not issubclass(self.answer, Answer) or not issubclass(self.pipeline.data, PartialBody):
            return frozenset()
        return frozenset(self.answer.model_fields.keys() - self.pipeline.data.model_fields.keys())


def endpoint(
    *,
    scope: str,
    status: int = 200,
    media_types: Sequence[str] = (JSON,),
    errors: Sequence[type[ApiError]] = (),
    replica: bool = False,
    turn: str | None = None,
) -> Callable[[Handler], Callable[..., Awaitable[Response]]]:
    """Make a handler an endpoint. `errors` lists the errors beyond those that every endpoint can return.

    The types of the handler's parameters `data` and `query`, and of what it returns, are those of the request's body,
    of its query parameters, and of the answer. One that returns a `Response` serializes its answer itself.

    A read replica may answer lists, which are the endpoints that return a `Page`, and those declared as `replica`.
    Endpoints whose transactions wait for the same lock of the organization have the same `turn`.
    """

    def decorate(handler: Handler) -> Callable[..., Awaitable[Response]]:
        summary, _, description = inspect.cleandoc(handler.__doc__ or "").partition("\n\n")
        pipeline = HandlerPipeline.from_handler(handler, "session", "principal", validated=("data", "query"))
        answer: Any = None if pipeline.answer is Response else pipeline.answer
        declared = Endpoint(
            handler.__name__,
            summary,
            description,
            scope,
            answer,
            status,
            media_types,
            tuple(errors),
            replica or (isinstance(answer, type) and issubclass(answer, Page)),
            turn,
            pipeline,
            TypeAdapter(answer),
        )
        if declared.replica and pipeline.writes:
            raise TypeError(f"{handler.__name__}: a replica may answer it, and its session may write")

        @wraps(handler)
        async def serve(**path: str) -> Response:
            return await _serve(declared, path)

        serve.endpoint = declared  # type: ignore[attr-defined]
        serve.pipeline = declared.pipeline  # type: ignore[attr-defined]
        return serve

    return decorate


async def _serve(declared: Endpoint, path: Mapping[str, str]) -> Response:
    principal = await _admit(declared)
    arguments: Arguments = {"principal": principal, **parse_path(path)}
    if declared.pipeline.query is not None or request.query_string:
        values = {name: items[0] if len(items) == 1 else items for name, items in request.args.lists()}
        if declared.pipeline.query is None:
            raise ValidationFailed.field(next(iter(values), "query"), "this endpoint takes no query parameters")
        arguments["query"] = parse_query(declared.pipeline.query, values)
    try:
        raw = await request.get_data(as_text=False, cache=False, parse_form_data=False)
    except RequestEntityTooLarge:
        raise PayloadTooLarge from None
    if declared.pipeline.data is not None:
        parsed = declared.pipeline.data, declared.read_only_fields, raw, request.mimetype
        # Parsing a long body takes time, and calls whose audio this process carries must not wait for it.
        if len(raw) > LONG_BODY_BYTES:
            arguments["data"] = await asyncio.get_running_loop().run_in_executor(LONG_BODY_THREAD, _body, *parsed)
        else:
            arguments["data"] = _body(*parsed)
    replay = _idempotent(raw)
    if replay is None and "session" not in declared.pipeline.parameters:
        return await _respond(declared, arguments)
    if declared.replica:

        async def respond(session: ReadSession) -> Response:
            return await _respond(declared, {**arguments, "session": session})

        return await web_context().replica.read(principal.organization_id, respond, actor=principal.actor)
    if replay is None:
        async with declared.pipeline.open_session(principal, declared.turn) as session:
            return await _respond(declared, {**arguments, "session": session})
    async with open_write_session(principal, declared.turn) as session:
        return await _respond_once(declared, {**arguments, "session": session}, session, replay)


async def _respond_once(
    declared: Endpoint, arguments: Arguments, session: WriteSession, replay: IdempotentRequest
) -> Response:
    """Return the response stored under the request's `Idempotency-Key`, or respond and store the response, unless the
    handler has built it.
    """
    kept = await find_stored_response(session, replay)
    if kept is not None:
        status, body = kept
        return Response(body, status, {"Idempotent-Replayed": "true"}, content_type=JSON)
    response = await _respond(declared, arguments)
    if declared.pipeline.answer is not Response:
        store_response(session, replay, declared.status, await response.get_data(as_text=False))
    return response


async def _respond(declared: Endpoint, arguments: Arguments) -> Response:
    result = await declared.pipeline.call(arguments)
    if isinstance(result, Response):
        return result
    content = b"" if declared.answer is None else declared.adapter.dump_json(result, by_alias=True)
    return Response(content, declared.status, content_type=JSON if content else None)


async def _admit(declared: Endpoint) -> Principal:
    context = web_context()
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    principal = await context.resolve(credential.strip()) if kind.lower() == "bearer" and credential.isascii() else None
    if principal is None:
        raise InvalidCredentials(was_sent=kind.lower() == "bearer" and bool(credential))
    organization_id = str(principal.organization_id)
    structlog.contextvars.bind_contextvars(organization_id=organization_id)
    trace.get_current_span().set_attribute("switchboard.organization.id", organization_id)
    limit = principal.read_limit if request.method == "GET" else principal.write_limit
    verdict = await context.limiter.check(declared.name, str(principal.credential_id), limit)
    if verdict.revoked:
        raise InvalidCredentials(was_sent=True)
    g.rate_limit_headers = build_rate_limit_headers(limit, verdict)
    if not verdict.allowed:
        raise RateLimited
    if principal.is_suspended:
        raise OrganizationSuspended
    if principal.is_moving and request.method != "GET" and not declared.scope.endswith(":read"):
        raise OrganizationMoving
    principal.require_scope(declared.scope)
    return principal


def _body(model: type[BaseModel], read_only: frozenset[str], raw: bytes, mimetype: str) -> BaseModel:
    if raw and mimetype != "application/json" and not mimetype.endswith("+json"):
        raise UnsupportedMediaType
    try:
        return model.model_validate_json(raw or b"{}", context={READ_ONLY: read_only})
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None


def _idempotent(raw: bytes) -> IdempotentRequest | None:
    key = request.headers.get("Idempotency-Key")
    if key is None or request.method != "POST":
        return None
    line = f"{request.method} {request.path}?{request.query_string.decode('latin-1')}"
    return identify_request(key, request_line=line, body=raw)
