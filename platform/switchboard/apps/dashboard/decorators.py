"""The two decorators of the dashboard: `page` shows something to somebody who is signed in, `action` does something and leads on.

    @dashboard.get("/dashboard/contacts")
    @page(query=ContactQuery)
    async def contacts_page(session: TenantSession, query: ContactQuery) -> str:
        return await render("dashboard/contacts/list.html", contacts=await contacts.found(session, query))

    @dashboard.post("/dashboard/contacts/new")
    @action(form=ContactCreate, invalid=new_contact_page)
    async def add_contact(session: TenantSession, data: ContactCreate) -> Next:
        contact = await contacts.create(session, data)
        return Next(url_for("dashboard.contact_page", contact_id=contact.id), "The contact was added.")

A handler takes what it names: `visitor`, `session` (one transaction of the organization), `query`, `form` (a page's `Form`, filled where an action
was refused), `data` (an action's parsed form), `files`, and the path's ids. What a service refuses becomes the page `invalid` with the faults at
their fields and the refusal's status, or a notice on the page where the button was; the transaction is rolled back either way. What is done is
noted in the audit log, as by the API.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias
from uuid import UUID

from pydantic import BaseModel, JsonValue, ValidationError
from quart import Response, request

from switchboard.apps.dashboard.forms.form import Form, nested, parse
from switchboard.apps.dashboard.visitor import Forbidden, Visitor, check_form, current_visitor, sending_page
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import ApiError, NotFound, ValidationFailed
from switchboard.foundation.web.schemas import Query, parse_id
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.service import IdentityError, note_change
from switchboard.runtime import current_runtime

Handler: TypeAlias = Callable[..., Awaitable[Any]]
View: TypeAlias = Callable[..., Awaitable[Response]]
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Next:
    """Where an action leads, and what the page there says about it, once."""

    url: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class _Page:
    """What a handler declares. The house tests look for it."""

    role: str
    wanted: frozenset[str]
    handler: Handler
    query: type[Query] | None = None
    form: type[BaseModel] | None = None


def page(*, role: str = "member", query: type[Query] | None = None) -> Callable[[Handler], View]:
    """Make a handler a page: it answers HTML, or a `Response` of its own."""

    def decorate(handler: Handler) -> View:
        declared = _Page(role, _wanted(handler), handler, query)

        @wraps(handler)
        async def serve(**path: str) -> Response:
            return await show(declared, await _admit(role), path)

        serve.page = declared  # type: ignore[attr-defined]
        return serve

    return decorate


def action(
    *, role: str = "member", form: type[BaseModel] | None = None, invalid: View | None = None
) -> Callable[[Handler], View]:
    """Make a handler an action: it answers `Next`, or a page to be shown at once, such as a key that is shown only now."""

    def decorate(handler: Handler) -> View:
        declared = _Page(role, _wanted(handler), handler, form=form)

        @wraps(handler)
        async def serve(**path: str) -> Response:
            visitor = await _admit(role)
            await check_form(visitor)
            values = nested(await request.form)
            try:
                return await _act(declared, visitor, path, values)
            except (ApiError, IdentityError) as error:
                return await _refuse(error, values, visitor, getattr(invalid, "page", None), path)

        serve.page = declared  # type: ignore[attr-defined]
        return serve

    return decorate


async def show(
    declared: _Page, visitor: Visitor, path: Mapping[str, str], form: Form | None = None, status: int = 200
) -> Response:
    """A page, with a form that was refused where there is one."""
    arguments: dict[str, object] = {"visitor": visitor, "form": form or Form(), **_ids(path)}
    if declared.query is not None:
        arguments["query"] = _query(declared.query)
    async with AsyncExitStack() as stack:
        if "session" in declared.wanted:
            arguments["session"] = await stack.enter_async_context(
                current_runtime().database.tenant(visitor.organization_id)
            )
        shown = await declared.handler(**{name: value for name, value in arguments.items() if name in declared.wanted})
    return shown if isinstance(shown, Response) else Response(shown, status, content_type=HTML)


async def _act(declared: _Page, visitor: Visitor, path: Mapping[str, str], values: dict[str, JsonValue]) -> Response:
    arguments: dict[str, object] = {"visitor": visitor, "files": await request.files, **_ids(path)}
    if declared.form is not None:
        arguments["data"] = parse(declared.form, values)
    async with AsyncExitStack() as stack:
        if "session" in declared.wanted:
            arguments["session"] = await stack.enter_async_context(
                current_runtime().database.tenant(visitor.organization_id, actor=visitor.principal.actor)
            )
        done = await declared.handler(**{name: value for name, value in arguments.items() if name in declared.wanted})
        await _audit(declared, visitor, arguments.get("session"), values)
    if isinstance(done, Next):
        return await lead_to(done, visitor)
    return done if isinstance(done, Response) else Response(done, content_type=HTML)


async def _audit(declared: _Page, visitor: Visitor, session: object, values: Mapping[str, JsonValue]) -> None:
    """Note who did what with which fields, and never a value."""
    if visitor.organization is None:
        return
    subject = " ".join(part for part in (request.path.removeprefix("/dashboard/"), ", ".join(sorted(values))) if part)
    if isinstance(session, TenantSession):
        note_change(session, visitor.principal, declared.handler.__name__, subject)
        return
    async with current_runtime().database.tenant(visitor.organization_id) as own:
        note_change(own, visitor.principal, declared.handler.__name__, subject)


async def lead_to(done: Next, visitor: Visitor) -> Response:
    """The browser's next page; 303, so that loading it again repeats nothing."""
    if done.notice:
        await sign_in.save_notice(current_runtime().database, visitor.session.id, done.notice)
    return Response("", 303, {"Location": done.url})


async def _refuse(
    error: ApiError | IdentityError,
    values: dict[str, JsonValue],
    visitor: Visitor,
    invalid: _Page | None,
    path: Mapping[str, str],
) -> Response:
    if isinstance(error, NotFound | Forbidden):
        raise error
    message = error.detail if isinstance(error, ApiError) else str(error)
    errors = error.errors if isinstance(error, ApiError) else []
    if invalid is None:
        told = "; ".join([f"{fault['field']}: {fault['message']}" for fault in errors]) or message
        return await lead_to(Next(_came_from(), told), visitor)
    form = Form(values, errors=errors, message=message)
    return await show(invalid, visitor, path, form, error.status if isinstance(error, ApiError) else 422)


def _came_from() -> str:
    """The page of ours on which the button was."""
    page = sending_page()
    return page if page.startswith("/dashboard") else "/dashboard"


async def _admit(role: str) -> Visitor:
    visitor = await current_visitor()
    if role != "superadmin":
        _ = visitor.organization_id
    if not visitor.may(role):
        raise Forbidden
    return visitor


def _wanted(handler: Handler) -> frozenset[str]:
    return frozenset(inspect.signature(handler).parameters)


def _ids(path: Mapping[str, object]) -> dict[str, UUID | str]:
    found: dict[str, UUID | str] = {}
    for name, text in path.items():
        value = parse_id(str(text)) if name.endswith("_id") else str(text)
        if value is None:
            raise NotFound
        found[name] = value
    return found


def _query(model: type[Query]) -> Query:
    """What the address asks for; empty filters of a form are left out."""
    values = {name: value for name, value in request.args.items() if value}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValidationFailed.of(error) from None
