"""The dashboard: its blueprint with response headers and errors as pages, and the decorators of its pages.

`page` shows something to a signed-in user, `live_part` keeps a part of a page current, and `action` changes something
and redirects. Each makes its handler the view of an address: of GET, and an action of POST.

    @page("/dashboard/contacts")
    async def contacts_page(session: WriteSession, query: ContactQuery) -> str:
        found = await rows(session, contacts.list_contacts(session), query)
        return await render("dashboard/contacts/list.html", contacts=found)

    @action("/dashboard/contacts/new", invalid=new_contact_page)
    async def add_contact(session: WriteSession, data: ContactCreate) -> Next:
        contact = await contacts.create_contact(session, data)
        return go_to("contact_page", "Contact created.", contact_id=contact.id)

A handler receives the arguments that it names: `viewer`, `session` (one transaction of the organization), `query`,
`form` (a page's `Form`, filled in when an action was refused), `data` (an action's parsed form), `fields` (the object
that the names of an action's form describe, which a refused form shows as the handler left it), `files`, the path's
ids, and parts of the process such as `keyring`. When a service refuses an action, the page `invalid` is shown with the
errors next to their fields and with the error's status; without `invalid`, the error becomes a notice on the page that
the form was sent from. The transaction is rolled back either way.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeAlias

import structlog
from jinja2 import TemplateError
from quart import Blueprint, Quart, Response, current_app, g, redirect, request, url_for
from quart.typing import ResponseReturnValue
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from switchboard.apps.dashboard.forms.form import Form, nest_fields, parse_form
from switchboard.apps.dashboard.forms.typed_secrets import restore_typed_secrets
from switchboard.apps.dashboard.ui.rendering import install_filters, install_translations, render
from switchboard.apps.dashboard.viewer import (
    BrowserSessions,
    NoOrganization,
    NotSignedIn,
    PageForbidden,
    SupportForbidden,
    Viewer,
    choose_page_language,
    get_sending_page,
)
from switchboard.foundation.keyring import SecretError
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import set_language
from switchboard.foundation.web.errors import ApiError, NotFound, Unavailable
from switchboard.foundation.web.pipeline import Arguments, Handler, HandlerPipeline, parse_path, parse_query
from switchboard.foundation.web.problems import translate_database_error, translate_http_error
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.identity.service import IdentityError
from switchboard.runtime import current_runtime

logger = structlog.get_logger()
dashboard = Blueprint(
    "dashboard", __name__, template_folder="templates", static_folder="static", static_url_path="/dashboard/static"
)

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "media-src": "'self' blob:",
    "worker-src": "'self'",
    "manifest-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
"""The content security policy: nothing from other hosts, and no inline scripts or styles."""


def content_security_policy(**changed: str) -> str:
    """Return the header's value. A page that needs another directive names it with `_` for `-`."""
    changes = {name.replace("_", "-"): value for name, value in changed.items()}
    return "; ".join(f"{name} {value}" for name, value in {**POLICY, **changes}.items())


install_filters(dashboard)
install_translations(dashboard)


@dashboard.before_request
async def choose_browser_language() -> None:
    """Use the browser's language until the viewer is known."""
    set_language(choose_page_language(None))


@dashboard.after_request
async def set_security_headers(response: Response) -> Response:
    """Set the headers of every response. The referrer policy is `same-origin`: with `no-referrer`, browsers would not
    send the origin of the dashboard's own forms.
    """
    response.headers.setdefault("Content-Security-Policy", content_security_policy())
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Permissions-Policy"] = "microphone=(self), camera=(), geolocation=()"
    if request.endpoint not in ("dashboard.static", "dashboard.client_sdk", "dashboard.organization_logo"):
        response.headers["Cache-Control"] = "no-store"
    return response


@dashboard.errorhandler(NotSignedIn)
async def to_sign_in(error: NotSignedIn) -> ResponseReturnValue:
    """Redirect to the sign-in page, and from there to the requested page, or to the page whose form was sent."""
    after = request.full_path.rstrip("?") if request.method == "GET" else get_sending_page()
    return redirect(url_for("dashboard.sign_in_page", after=after or None), HTTPStatus.SEE_OTHER)


@dashboard.errorhandler(NoOrganization)
async def to_console(error: NoOrganization) -> ResponseReturnValue:
    """Redirect a superadmin who has entered no organization to the operator console; show others the error."""
    viewer: Viewer | None = g.get("viewer")
    if viewer is None or not viewer.has_role("superadmin"):
        return await show_error(error)
    return redirect(url_for("dashboard.console_page"), HTTPStatus.SEE_OTHER)


@dashboard.errorhandler(ApiError)
async def show_error(error: ApiError) -> ResponseReturnValue:
    """Show any other API error as a page."""
    page = await render("dashboard/error.html", title=_(error.title), detail=_(error.detail), status=error.status)
    return Response(page, error.status, error.headers)


@dashboard.errorhandler(Exception)
async def show_other_error(error: Exception) -> ResponseReturnValue:
    """Show an error of the framework, such as 404 for an unknown file, or of a server that cannot be reached, a missing
    key of a text, or an internal error. The log has the details, by the request's id.
    """
    if isinstance(error, HTTPException):
        return await show_error(translate_http_error(error))
    if isinstance(error, SQLAlchemyError):
        return await show_error(translate_database_error(error))
    # Jinja's error about a missing template is an `OSError`, too.
    if isinstance(error, SecretError | OSError) and not isinstance(error, TemplateError):
        logger.exception("a server cannot be reached, or a key is missing")
        return await show_error(Unavailable())
    if current_app.testing:
        raise error
    logger.exception("page failed")
    return await show_error(ApiError())


@dashboard.get("/")
async def front_door() -> ResponseReturnValue:
    """Redirect the server's root to the dashboard."""
    return redirect(url_for("dashboard.overview"), HTTPStatus.SEE_OTHER)


@dashboard.get("/dashboard/<path:nowhere>")
async def nowhere(nowhere: str) -> ResponseReturnValue:
    """Show an error for any other address."""
    raise NotFound(_("The page /dashboard/%(nowhere)s does not exist.", nowhere=nowhere))


# Decorators of pages.

View: TypeAlias = Callable[..., Awaitable[Response]]
FINAL_HEADER = "Live-Part-Final"


class FinalPart(str):
    """The last content of a live part: it does not change any more."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Next:
    """The address that an action redirects to, and a notice that the page there shows once, in its tone."""

    url: str
    notice: str = ""
    tone: NoticeTone = "done"


def go_to(page: str, notice: str = "", tone: NoticeTone = "done", **path: Any) -> Next:
    """Redirect an action to a page of the dashboard, by its handler's name and the parts of its address."""
    return Next(url_for(f"dashboard.{page}", **path), notice, tone)


@dataclass(frozen=True, slots=True)
class PageDeclaration:
    """A handler's declaration. The repository's rules look for it."""

    role: str
    pipeline: HandlerPipeline
    live_seconds: int | None = None
    """Seconds between two renderings of a live part; None for any other page."""
    is_action: bool = False
    outlasts_support: bool = False
    """True for an action that needs less than an owner's role, and whose effect a support session must not leave
    behind.
    """

    def is_open_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer's role may open the page, or do the action."""
        if not self.is_action:
            return viewer.may_see(self.role)
        return viewer.has_role(self.role) and not (self.outlasts_support and viewer.support is not None)

    def require_access(self, viewer: Viewer) -> None:
        """Refuse a viewer without the role, or whose organization is suspended, and actions while it is being moved.
        Raises `NoOrganization`, `PageForbidden`, `SupportForbidden`, `OrganizationSuspended`, or `OrganizationMoving`.
        """
        if not self.is_of_installation:
            if viewer.organization is None:
                raise NoOrganization
            viewer.require_running_organization()
            if self.is_action:
                viewer.require_resting_organization()
        if not self.is_open_to(viewer):
            raise SupportForbidden if viewer.support is not None else PageForbidden

    @property
    def is_of_installation(self) -> bool:
        """Return whether the page is the same in every organization, and outside of them."""
        return self.role in ("user", "superadmin")

    async def call(self, viewer: Viewer, arguments: Arguments) -> Any:
        """Call the handler, within a transaction if it names `session`."""
        if "session" not in self.pipeline.parameters:
            return await self.pipeline.call(arguments)
        async with self.pipeline.open_session(viewer.principal) as session:
            return await self.pipeline.call({**arguments, "session": session})


def page(path: str, *, role: str = "viewer", live_seconds: int | None = None) -> Callable[[Handler], View]:
    """Make a handler a page: it returns HTML, or a `Response` of its own. `role` is the least that may open it."""

    def decorate(handler: Handler) -> View:
        pipeline = HandlerPipeline.from_handler(handler, "viewer", "session", "form", validated=("query",))
        declared = PageDeclaration(role, pipeline, live_seconds)

        @wraps(handler)
        async def serve(**path: str) -> Response:
            return await show_page(declared, await _admit(declared), path)

        return _register(serve, declared, path)

    return decorate


def live_part(path: str, *, role: str = "viewer", seconds: int = 1) -> Callable[[Handler], View]:
    """Make a handler a live part of pages: HTML that the server keeps current while somebody looks at it.

    A template contains `<div data-live="{{ url }}">{% include part %}</div>`, and the handler at that address renders
    the part alone, every so many `seconds`; it returns a `FinalPart` once that does not change any more.
    `static/js/live.js` follows the parts of all tabs by one stream (`pages/live_parts.py`), or asks for each part again
    where the browser has no shared workers.
    """
    return page(path, role=role, live_seconds=seconds)


def _register(serve: View, declared: PageDeclaration, *paths: str) -> View:
    serve.page = declared  # type: ignore[attr-defined]
    serve.pipeline = declared.pipeline  # type: ignore[attr-defined]
    for path in paths:
        dashboard.add_url_rule(path, view_func=serve, methods=["POST" if declared.is_action else "GET"])
    return serve


def action(
    *paths: str,
    role: str = "builder",
    invalid: View | None = None,
    outlasts_support: bool = False,
    for_script: bool = False,
) -> Callable[[Handler], View]:
    """Make a handler an action: it returns `Next`, or a page to show at once, such as a key that is shown only once.

    A support session may do neither an owner's action nor an action that `outlasts_support`. An error of an action
    `for_script` is JSON, `{"fault": "…"}`.
    """

    def decorate(handler: Handler) -> View:
        pipeline = HandlerPipeline.from_handler(handler, "viewer", "session", "files", "fields", validated=("data",))
        declared = PageDeclaration(role, pipeline, is_action=True, outlasts_support=outlasts_support)

        @wraps(handler)
        async def serve(**path: str) -> Response:
            viewer = await _admit(declared)
            await _get_sessions().check_form(viewer)
            fields = restore_typed_secrets(current_runtime().keyring, viewer.csrf, await request.form)
            values = nest_fields(fields)
            try:
                return await _act(declared, viewer, path, values)
            except (ApiError, IdentityError) as error:
                if for_script and isinstance(error, ApiError):
                    return Response(json.dumps({"fault": error.detail}), error.status, content_type="application/json")
                return await _refuse(error, values, viewer, getattr(invalid, "page", None), path)

        return _register(serve, declared, *paths)

    return decorate


def iterate_pages(application: Quart) -> Iterator[tuple[Rule, str, PageDeclaration]]:
    """Yield the rule, method, and declaration of each page and action."""
    for rule in application.url_map.iter_rules():
        declared = getattr(application.view_functions[rule.endpoint], "page", None)
        if isinstance(declared, PageDeclaration):
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                yield rule, method, declared


async def show_page(
    declared: PageDeclaration, viewer: Viewer, path: Mapping[str, str], form: Form | None = None, status: int = 200
) -> Response:
    """Respond with a page, with the refused form if there is one."""
    shown = await render_page(declared, viewer, path, request.args, form)
    if isinstance(shown, Response):
        return shown
    headers = {FINAL_HEADER: "1"} if isinstance(shown, FinalPart) else {}
    return Response(shown, status, headers)


async def render_page(
    declared: PageDeclaration,
    viewer: Viewer,
    path: Mapping[str, str],
    query: Mapping[str, str],
    form: Form | None = None,
) -> Any:
    """Return what the page's handler returns for this path and these parameters."""
    arguments: Arguments = {"viewer": viewer, "form": form or Form(), **parse_path(path)}
    if (model := declared.pipeline.query) is not None:
        # A filter form sends its empty fields too.
        arguments["query"] = parse_query(model, {name: value for name, value in query.items() if value})
    return await declared.call(viewer, arguments)


async def _act(declared: PageDeclaration, viewer: Viewer, path: Mapping[str, str], values: JsonObject) -> Response:
    arguments: Arguments = {"viewer": viewer, "files": await request.files, "fields": values, **parse_path(path)}
    if (model := declared.pipeline.data) is not None:
        arguments["data"] = parse_form(model, values)
    done = await declared.call(viewer, arguments)
    if isinstance(done, Next):
        return await redirect_to_next(done, viewer)
    return done if isinstance(done, Response) else Response(done)


async def redirect_to_next(done: Next, viewer: Viewer) -> Response:
    """Redirect to the action's next page. The status is 303, so that reloading that page repeats nothing."""
    if done.notice:
        await sign_in.save_notice(_get_sessions().database, viewer.session.id, done.notice, done.tone)
    return Response("", 303, {"Location": done.url})


async def _refuse(
    error: ApiError | IdentityError,
    values: JsonObject,
    viewer: Viewer,
    invalid: PageDeclaration | None,
    path: Mapping[str, str],
) -> Response:
    if isinstance(error, NotFound | PageForbidden):
        raise error
    message = _(error.detail if isinstance(error, ApiError) else str(error))
    errors = error.errors if isinstance(error, ApiError) else []
    if invalid is None:
        notice = "; ".join([f"{fault['field']}: {_(fault['message'])}" for fault in errors]) or message
        sent_from = get_sending_page()
        after = sent_from if sent_from.startswith("/dashboard") else "/dashboard"
        return await redirect_to_next(Next(after, notice, "failure"), viewer)
    form = Form(values, errors=errors, message=message)
    return await show_page(invalid, viewer, path, form, error.status if isinstance(error, ApiError) else 422)


def _get_sessions() -> BrowserSessions:
    runtime = current_runtime()
    return BrowserSessions(runtime.settings, runtime.database)


async def _admit(declared: PageDeclaration) -> Viewer:
    viewer = await _get_sessions().require_viewer()
    declared.require_access(viewer)
    return viewer
