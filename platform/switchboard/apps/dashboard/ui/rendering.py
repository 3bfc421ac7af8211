"""Template rendering: the frame of every page, and what templates call."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlencode

from markupsafe import Markup, escape
from quart import Blueprint, current_app, g, render_template, request, url_for
from quart.blueprints import BlueprintSetupState
from sqlmodel.sql.expression import SelectOfScalar
from werkzeug.exceptions import HTTPException

from switchboard.apps.dashboard.forms.typed_secrets import encrypt_typed_secret
from switchboard.apps.dashboard.ui import formats
from switchboard.apps.dashboard.ui.labels import describe_value
from switchboard.apps.dashboard.ui.navigation import SECTIONS, Section
from switchboard.apps.dashboard.ui.week import ROWS_OF_HOUR, BlockCluster, WeekBlock
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import get_language, gettext, list_script_messages, ngettext, npgettext, pgettext
from switchboard.foundation.web.paging import TableT, paginate
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.passkeys import can_have_passkeys
from switchboard.runtime import current_runtime

QueryT = TypeVar("QueryT", bound=PageQuery)
THEMES = ("light", "dark")
ABBREVIATIONS = {"api": "API", "oauth": "OAuth", "sms": "SMS"}
TONES = {
    status: tone
    for tone, statuses in {
        "good": "completed positive succeeded passed active delivered sent received ready enabled running connected "
        "booked",
        "bad": "failed negative error provider_failed undelivered disabled revoked busy no-answer canceled "
        "disconnected",
        "busy": "in-progress ringing queued pending processing scheduled waiting paused dialing in_progress",
        "calm": "neutral",
    }.items()
    for status in statuses.split()
}
"""The style sheet's class of each status."""


@dataclass(frozen=True, slots=True)
class Shell:
    """The frame around a page. That of the documentation has no viewer."""

    path: str
    theme: str
    language: str
    viewer: Viewer | None = None
    sections: Sequence[Section] = ()
    notice: str = ""
    notice_tone: str = ""
    script_messages: Mapping[str, str] = field(default_factory=dict)


async def render(template: str, **values: object) -> str:
    """Render a page as HTML."""
    viewer: Viewer | None = g.get("viewer")
    runtime = current_runtime()
    notice = (viewer and viewer.session.notice) or ""
    if viewer and notice:  # which is shown once
        await sign_in.save_notice(runtime.database, viewer.session.id, None)
    theme = request.cookies.get("theme", "")
    shell = Shell(
        request.path,
        theme if theme in THEMES else "",
        get_language(),
        viewer,
        _sections(viewer),
        notice,
        viewer.session.notice_tone if viewer else "",
        list_script_messages(),
    )
    own = {
        "request_id": g.request_id,
        "base_url": runtime.settings.base_url,
        "offers_passkeys": can_have_passkeys(runtime.settings.base_url),
        "single_sign_on": bool(runtime.settings.oidc_issuer),
    }
    return await render_template(template, shell=shell, csrf_token=viewer.csrf if viewer else "", **own, **values)


def _sections(viewer: Viewer | None) -> list[Section]:
    shown = [
        Section(section.name, tuple(entry for entry in section.entries if viewer and viewer.may_see(entry.role)))
        for section in SECTIONS
    ]
    return [section for section in shown if section.entries]


async def render_part(template: str, **values: object) -> str:
    """Render a part of a page, for live updates."""
    viewer: Viewer | None = g.get("viewer")
    return await render_template(template, csrf_token=viewer.csrf if viewer else "", **values)


async def load_list(session: ReadSession, found: SelectOfScalar[TableT], query: PageQuery) -> Page[TableT]:
    """Return one page of a list. If the list has become shorter than the offset, return its last page."""

    async def load(asked: PageQuery) -> Page[TableT]:
        return await paginate(session, found, lambda row: row, asked)

    return await load_page(load, query)


async def load_page(load: Callable[[QueryT], Awaitable[Page[TableT]]], query: QueryT) -> Page[TableT]:
    """Return the page of a list that `load` returns; its last page if it has become shorter than the offset."""
    part = await load(query)
    if part.items or not part.total:
        return part
    return await load(query.model_copy(update={"offset": (part.total - 1) // query.limit * query.limit}))


def install_translations(blueprint: Blueprint) -> None:
    """Let templates translate: `_()`, `ngettext()`, and `{% trans %}`, whose variables are escaped."""

    @blueprint.record_once
    def install(state: BlueprintSetupState) -> None:
        environment = state.app.jinja_env
        environment.policies["ext.i18n.trimmed"] = True
        environment.add_extension("jinja2.ext.i18n")
        environment.install_gettext_callables(  # type: ignore[attr-defined]
            gettext, ngettext, newstyle=True, pgettext=pgettext, npgettext=npgettext
        )


def install_filters(blueprint: Blueprint) -> None:
    """Register the template filters and globals."""
    for word in (
        formats.date_time,
        formats.day,
        formats.month,
        formats.week_day,
        formats.weekday,
        formats.full_day,
        formats.clock,
        place,
        formats.duration,
        formats.spelled_minutes,
        formats.dollars,
        formats.phone,
        formats.percent,
        formats.count,
        formats.decimal,
        describe_value,
        prose,
        field_name,
        action_label,
        media_link,
        encrypt_typed,
    ):
        blueprint.add_app_template_filter(word, word.__name__)
    blueprint.add_app_template_filter(gettext, "translate")
    for part in (icon, logo, organization_logo, may_post, with_query, formats.time_span):
        blueprint.add_app_template_global(part, part.__name__)
    blueprint.app_context_processor(lambda: {"tones": TONES})


def place(part: WeekBlock | BlockCluster, first_row: int) -> str:
    """Return the classes of `css/appointments.css` that place a part of a day, counted from a row of the day."""
    (hour, quarter), (hours, quarters) = (divmod(rows, ROWS_OF_HOUR) for rows in (part.row - first_row, part.rows))
    return f"h{hour} q{quarter} hl{hours} ql{quarters}"


def media_link(url: str) -> str:
    """Return the page of a file of a received message, whose address is the API's; any other address as it is."""
    found = re.search(r"/v1/sms/media/([0-9a-f-]{36})$", url)
    return url_for("dashboard.text_media", media_id=found[1]) if found else url


def encrypt_typed(secret: str, name: str) -> str:
    """Return a field's typed secret for the hidden field of a form that is shown again."""
    return encrypt_typed_secret(current_runtime().keyring, g.viewer.csrf, secret, name)


def icon(name: str) -> Markup:
    """Render an icon of `static/icons.svg`."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>').format(
        url_for("dashboard.static", filename="icons.svg"), name
    )


def logo() -> Markup:
    return Markup('<img class="logo" src="{}" alt="" width="28" height="28">').format(
        url_for("dashboard.static", filename="logo.svg")
    )


def organization_logo(organization: Organization) -> Markup:
    """Render an organization's logo, nothing for one without."""
    if organization.logo_digest is None:
        return Markup("")
    return Markup('<img class="own-logo" src="{}" alt="{}">').format(
        url_for("dashboard.organization_logo", organization_id=organization.id, digest=organization.logo_digest),
        organization.name,
    )


def may_post(action: str) -> bool:
    """Return whether the viewer's role may submit a form to an address, empty for that of this page."""
    viewer: Viewer | None = g.get("viewer")
    try:
        endpoint, _ = current_app.url_map.bind("").match(action.partition("?")[0] or request.path, "POST")
    except HTTPException:
        return True
    declared = getattr(current_app.view_functions[endpoint], "page", None)
    return declared is None or (viewer is not None and declared.is_open_to(viewer))


def with_query(**changed: object) -> str:
    """Return this page's address with changes to its query. The offset is reset unless it is changed."""
    kept = {name: value for name, value in request.args.items() if name != "offset"}
    return f"{request.path}?{urlencode({**kept, **changed})}"


def prose(text: str) -> Markup:
    """Render text with words between backticks as code."""
    # `str`, because markup would be escaped once more when its parts are joined.
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text.strip()))))  # noqa: S704 - is escaped


def field_name(name: str) -> str:
    """Return a form field's dotted name in words, with rows counted from 1: `actions 1 phone number`."""
    parts = [
        str(int(part) + 1) if part.isdecimal() else part
        for part in name.split(".")
        if part not in ("params", "settings")
    ]
    return " ".join(gettext(part.replace("_", " ")) for part in parts or [name.rpartition(".")[2]])


def action_label(action: str) -> str:
    """Return an audit action as a label: `api_key.created` becomes "API key created"."""
    words = " ".join(ABBREVIATIONS.get(word, word) for word in re.split(r"[._]", action))
    return gettext(words[:1].upper() + words[1:])
