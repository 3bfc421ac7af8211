"""The part of a request that API endpoints and dashboard pages share: arguments, path ids, query, transaction, call.

A handler receives the arguments that it names: `session` (one transaction of the caller's organization, which reads or
writes as its type says), `query`, the path's ids as UUIDs, parts of the process such as `keyring`, and those of its
decorator (`principal` and `data`, or `viewer`, `form`, `data`, and `files`).
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel, ValidationError
from quart import Quart, current_app

from switchboard.foundation.database import Database, ReadReplica, ReadSession, WriteSession
from switchboard.foundation.injection import InvalidParameter, Parts, resolve_parameters
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import parse_id

# Objects that the endpoints of one application share, found through the application so that nothing is global.

EXTENSION = "switchboard.web"


@dataclass(frozen=True, slots=True)
class WebContext:
    """Transactions, reads from a replica, rate limits, and credential lookup.

    `resolved` holds the parts and services of the process that each handler names as arguments.
    """

    database: Database
    replica: ReadReplica
    limiter: RateLimiter
    resolve: Callable[[str], Awaitable[Principal | None]]
    """Finds the principal of a bearer credential; None if it is invalid."""
    resolved: Mapping[Callable[..., Awaitable[object]], Mapping[str, object]]


def web_context() -> WebContext:
    """Return the context of the application that serves the current request."""
    return cast("WebContext", current_app.extensions[EXTENSION])


Handler: TypeAlias = Callable[..., Awaitable[Any]]
Arguments: TypeAlias = dict[str, object]
QueryT = TypeVar("QueryT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class HandlerPipeline:
    """A handler with the names of its parameters, and the names of the arguments that its decorator has for it."""

    handler: Handler
    parameters: frozenset[str]
    offered: frozenset[str]
    data: type[BaseModel] | None
    """Model of the request's body or form, which the handler receives as `data`."""
    query: type[BaseModel] | None
    """Model of the query parameters."""
    answer: Any
    """Type of what the handler returns."""
    writes: bool
    """False if its `session` is a `ReadSession`."""

    @classmethod
    def from_handler(cls, handler: Handler, *offered: str, validated: Sequence[str] = ()) -> "HandlerPipeline":
        """Read the parameters and their types from the handler's signature. The decorator has the arguments `offered`
        for the handler, and those of `validated` whose types are models.
        """
        signature = inspect.signature(handler)
        types = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        known = {name: types[name] for name in validated if inspect.isclass(types.get(name))}
        found = {name: kind for name, kind in known.items() if issubclass(kind, BaseModel)}
        return cls(
            handler,
            frozenset(types),
            frozenset({*offered, *found}),
            found.get("data"),
            found.get("query"),
            signature.return_annotation,
            types.get("session", ReadSession) is not ReadSession,
        )

    def open_session(self, principal: Principal, turn: str | None = None) -> AbstractAsyncContextManager[ReadSession]:
        """Open the transaction of a request, which reads or writes as the handler's `session` says."""
        if self.writes:
            return open_write_session(principal, turn)
        return web_context().database.read(principal.organization_id, actor=principal.actor)

    async def call(self, arguments: Arguments) -> Any:
        """Call the handler with the arguments that it names."""
        known = {**web_context().resolved[self.handler], **arguments}
        return await self.handler(**{name: known[name] for name in self.parameters & known.keys()})

    def resolve(self, parts: Parts, path: frozenset[str]) -> Arguments:
        """Return the parts and services that the handler names. Raise `InvalidParameter`.

        A parameter has one source: the decorator, the path, or the parts.
        """
        if hiding := self.offered & path:
            raise InvalidParameter(f"{self.handler.__qualname__}: the path's {min(hiding)} would hide the decorator's")
        return resolve_parameters(self.handler, parts, self.offered | path)


def open_write_session(principal: Principal, turn: str | None = None) -> AbstractAsyncContextManager[WriteSession]:
    """Open the transaction of a request that writes, in its `turn` if it has one; an error rolls it back."""
    database, organization_id, actor = web_context().database, principal.organization_id, principal.actor
    if turn is None:
        return database.write(organization_id, actor=actor)
    return database.write_in_turn(organization_id, turn, actor=actor)


def inject(handler: Handler) -> Callable[..., Awaitable[Any]]:
    """Make a handler a plain view: it receives the path's parts as text, and the parts of the process that it names."""
    pipeline = HandlerPipeline.from_handler(handler)

    @wraps(handler)
    async def serve(**path: str) -> Any:
        return await pipeline.call({**path})

    serve.pipeline = pipeline  # type: ignore[attr-defined]
    return serve


def resolve_handlers(app: Quart, parts: Parts) -> dict[Handler, Arguments]:
    """Return the parts and services that the application's handlers name. Raise `InvalidParameter`."""
    resolved = {}
    for rule in app.url_map.iter_rules():
        pipeline: HandlerPipeline | None = getattr(app.view_functions[rule.endpoint], "pipeline", None)
        if pipeline is not None:
            resolved[pipeline.handler] = pipeline.resolve(parts, frozenset(rule.arguments))
    return resolved


def parse_path(path: Mapping[str, object]) -> Arguments:
    """Return the path's parts, those named `…_id` as UUIDs. Raise `NotFound` for one that is not a UUID."""
    arguments: Arguments = {}
    for name, part in path.items():
        value: UUID | str | None = parse_id(str(part)) if name.endswith("_id") else str(part)
        if value is None:
            raise NotFound
        arguments[name] = value
    return arguments


def parse_query(model: type[QueryT], values: Mapping[str, object]) -> QueryT:
    """Validate query parameters. Raise `ValidationFailed`."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None
