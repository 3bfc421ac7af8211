"""Calendars: list, connect, change, and remove. Accounts that need OAuth are connected at their vendor."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from quart import Response, request, url_for

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page, redirect_to_next
from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.forms.plugin_texts import describe_account
from switchboard.apps.dashboard.forms.schema_form import SchemaField
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.viewer import Cookie, PageForbidden, SupportForbidden, Viewer
from switchboard.engine.providers.connected_accounts import (
    ConsentRequest,
    GrantEnded,
    OAuthTokens,
    begin_consent,
    exchange_code,
)
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ApiError, InvalidState, NotFound, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, parse_id
from switchboard.plugin_sdk import CalendarProvider, JsonObject, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.appointments import appointment_types
from switchboard.resources.appointments.calendar_accounts import ACCESS_TOKEN, CalendarAccounts
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.resources.appointments.models import LOCAL, Calendar
from switchboard.resources.appointments.schemas import CalendarCreate, CalendarUpdate
from switchboard.resources.appointments.watches import CalendarWatches

PREFIX: Final = "settings."
COOKIE: Final = Cookie("connected_account", 600, "/dashboard/calendars/oauth")
LOCAL_TITLE: Final = LazyText("Built-in calendar")
LOCAL_ABOUT: Final = LazyText("The built-in calendar has the appointments and nothing else. It needs no account.")


@dataclass(frozen=True, slots=True)
class OAuthOffer:
    """A provider whose accounts are connected by OAuth; `missing` says why the organization cannot use it."""

    name: str
    title: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class CalendarKinds:
    """The providers of calendars, for one organization at a time."""

    registry: Registry
    providers: Providers
    accounts: CalendarAccounts

    def find_class(self, name: str) -> type[CalendarProvider[ProviderSettings]] | None:
        """Return the class of a provider; None for the built-in one. Raises `NotFound`."""
        kind = self.registry.find_provider_class(CalendarProvider, name)
        if kind is None and name != LOCAL:
            raise NotFound
        return kind

    def get_title(self, name: str) -> str:
        """Return the title of a provider in the language of the page; its name if no plugin provides it."""
        if name == LOCAL:
            return _(LOCAL_TITLE)
        kind = self.registry.find_provider_class(CalendarProvider, name)
        return (kind and _(kind.title)) or name

    def list_plain(self) -> list[tuple[str, str]]:
        """Return name and title of the providers that need no OAuth."""
        kinds = self.registry.list_provider_classes(CalendarProvider)
        names = [kind.name for kind in kinds if not self.accounts.needs_oauth(kind.name)]
        return [(name, self.get_title(name)) for name in (LOCAL, *names)]

    async def list_oauth(self, organization_id: UUID) -> list[OAuthOffer]:
        """Return the providers whose accounts are connected by OAuth."""
        found = []
        for kind in self.registry.list_provider_classes(CalendarProvider):
            if self.accounts.needs_oauth(kind.name):
                missing = ""
                try:
                    await self.providers.describe_oauth(organization_id, kind.name)
                except ProviderError as error:
                    missing = error.message
                found.append(OAuthOffer(kind.name, self.get_title(kind.name), missing))
        return found

    def list_fields(self, name: str) -> list[SchemaField]:
        """Return the fields of an account's form."""
        kind = self.find_class(name)
        if kind is None:
            return []
        hidden = {ACCESS_TOKEN} if self.accounts.needs_oauth(name) else set[str]()
        return [field for field in schema_form.list_schema_fields(kind.Account) if field.name not in hidden]

    def read_form(self, name: str, fields: JsonObject) -> JsonObject:
        """Return the typed settings of an account. Raises `ValidationFailed`."""
        typed = fields.get("settings")
        values, faults = schema_form.read_form_values(
            self.list_fields(name), typed if isinstance(typed, dict) else {}, prefix=PREFIX
        )
        if faults:
            raise ValidationFailed(_("Some settings are not valid."), errors=faults)
        return values


def _show_labels(form: Form, fields: list[SchemaField]) -> Form:
    return form.with_labels({"settings": _("Account"), **{PREFIX + field.name: field.label for field in fields}})


@page("/dashboard/calendars")
async def calendars_page(session: ReadSession, viewer: Viewer, query: PageQuery, kinds: CalendarKinds) -> str:
    """List the organization's calendars, and the providers of further ones."""
    found = await load_list(session, session.select(Calendar), query)
    may_change = viewer.has_role("owner")
    return await render(
        "dashboard/calendars/list.html",
        calendars=found,
        titles={calendar.provider: kinds.get_title(calendar.provider) for calendar in found.items},
        types=await appointment_types.list_types_by_calendar(session),
        needs_oauth=kinds.accounts.needs_oauth,
        may_change=may_change,
        plain=kinds.list_plain() if may_change else [],
        offers=await kinds.list_oauth(viewer.organization_id) if may_change else [],
    )


@page("/dashboard/calendars/new/<provider:name>", role="owner")
async def new_calendar_page(form: Form, *, name: str, kinds: CalendarKinds) -> str:
    """Show the form of a calendar whose account needs no OAuth."""
    kind = kinds.find_class(name)
    if kinds.accounts.needs_oauth(name):
        raise NotFound
    fields = kinds.list_fields(name)
    return await render(
        "dashboard/calendars/edit.html",
        form=_show_labels(form, fields),
        calendar=None,
        title=kinds.get_title(name),
        about=_(describe_account(kind)) if kind is not None else _(LOCAL_ABOUT),
        fields=fields,
        kept=frozenset[str](),
    )


@action("/dashboard/calendars/new/<provider:name>", role="owner", invalid=new_calendar_page)
async def connect_calendar(
    viewer: Viewer, fields: JsonObject, *, name: str, kinds: CalendarKinds, connections: CalendarConnections
) -> Next:
    """Connect a calendar whose account needs no OAuth."""
    given: JsonObject = {
        "provider": name,
        "name": fields.get("name", ""),
        "settings": kinds.read_form(name, fields),
    }
    calendar = await connections.connect(viewer.principal, parse_form(CalendarCreate, given))
    return go_to("calendars_page", _("%(name)s is connected.", name=calendar.name))


@page("/dashboard/calendars/<calendar_id>", role="owner")
async def calendar_page(session: ReadSession, calendar_id: UUID, form: Form, kinds: CalendarKinds) -> str:
    """Show the name and the account of a calendar. A stored secret is never shown."""
    calendar = await get_row(session, Calendar, calendar_id)
    fields = kinds.list_fields(calendar.provider)
    kept: JsonObject = {
        "name": calendar.name,
        "settings": schema_form.values_to_form(fields, calendar.settings),
    }
    return await render(
        "dashboard/calendars/edit.html",
        form=_show_labels(form.starting_with(kept), fields),
        calendar=calendar,
        title=kinds.get_title(calendar.provider),
        about="",
        fields=fields,
        kept=kinds.accounts.list_secret_settings(calendar),
    )


@action("/dashboard/calendars/<calendar_id>", role="owner", invalid=calendar_page)
async def save_calendar(
    viewer: Viewer,
    calendar_id: UUID,
    fields: JsonObject,
    *,
    kinds: CalendarKinds,
    connections: CalendarConnections,
    database: Database,
) -> Next:
    """Change the name or the account of a calendar. Empty secrets stay; a disconnected account is tried once more."""
    async with database.read(viewer.organization_id) as session:
        calendar = await get_row(session, Calendar, calendar_id)
    changes = _find_changes(calendar, kinds, fields)
    saved = await connections.update(viewer.principal, calendar_id, parse_form(CalendarUpdate, changes))
    return go_to("calendars_page", _("%(name)s was saved.", name=saved.name))


def _find_changes(calendar: Calendar, kinds: CalendarKinds, fields: JsonObject) -> JsonObject:
    """Return the fields of `CalendarUpdate`: null for a setting that was emptied, and nothing for an empty secret."""
    changes: JsonObject = {"name": fields.get("name", "")}
    if calendar.provider != LOCAL:
        known = kinds.list_fields(calendar.provider)
        emptied: JsonObject = {field.name: None for field in known if not field.secret}
        changes["settings"] = {**emptied, **kinds.read_form(calendar.provider, fields)}
    return changes


@action("/dashboard/calendars/<calendar_id>/remove", role="owner")
async def remove_calendar(session: WriteSession, viewer: Viewer, calendar_id: UUID, watches: CalendarWatches) -> Next:
    """Remove a calendar that no appointment type names."""
    await appointment_types.delete_calendar(session, viewer.principal, calendar_id, watches)
    return go_to("calendars_page", _("Calendar removed."), "warning")


# Accounts that are connected by OAuth.


@dataclass(frozen=True, slots=True)
class AccountConsent:
    """The way of a user to the vendor of an account and back."""

    settings: Settings
    keyring: KeyRing
    database: Database
    kinds: CalendarKinds
    connections: CalendarConnections

    @property
    def callback(self) -> str:
        """The address to which the vendor sends the browser back."""
        return self.settings.base_url + url_for("dashboard.finish_consent")

    async def begin(self, viewer: Viewer, name: str, subject: str) -> tuple[str, ConsentRequest]:
        """Return the vendor's address, and the state to keep meanwhile. `subject` is the id of a calendar that is
        connected again; empty for a new one.

        Raises `NotFound`, and `InvalidState` for a provider that is not set up.
        """
        if not self.kinds.accounts.needs_oauth(name):
            raise NotFound
        if subject:
            async with self.database.read(viewer.organization_id) as session:
                await get_row(session, Calendar, _parse_calendar_id(subject))
        try:
            service = await self.kinds.providers.describe_oauth(viewer.organization_id, name)
        except ProviderError as error:
            raise InvalidState(error.message) from error
        return begin_consent(service, self.callback, asker=_get_asker(viewer), provider=name, subject=subject)

    async def finish(self, viewer: Viewer, given: Mapping[str, str]) -> Calendar:
        """Connect the account of the user who began, with the parameters that the vendor has `given`.

        Raises `ApiError` and `ProviderError`, and saves nothing.
        """
        consent = ConsentRequest.unseal(COOKIE.read(), self.keyring)
        if (
            consent is None
            or not hmac.compare_digest(consent.state.encode(), given.get("state", "").encode())
            or consent.asker != _get_asker(viewer)
        ):
            raise InvalidState(_("This connection was started in another browser, or has expired. Try again."))
        title, refusal = self.kinds.get_title(consent.provider), given.get("error", "")
        if refusal == "access_denied":
            raise InvalidState(_("You have not allowed access to the account of %(title)s.", title=title))
        if refusal or not given.get("code"):
            reason = refusal if re.fullmatch(r"[\w.-]{1,64}", refusal, re.ASCII) else _("no code")
            raise InvalidState(
                _("%(title)s did not give access to the account: %(reason)s.", title=title, reason=reason)
            )
        tokens = await self._exchange_code(viewer, consent, title, code=given["code"])
        if not consent.subject:
            return await self.connections.connect_account(viewer.principal, consent.provider, tokens)
        calendar_id = _parse_calendar_id(consent.subject)
        return await self.connections.reconnect_account(viewer.principal, calendar_id, consent.provider, tokens)

    async def _exchange_code(self, viewer: Viewer, consent: ConsentRequest, title: str, *, code: str) -> OAuthTokens:
        try:
            service = await self.kinds.providers.describe_oauth(viewer.organization_id, consent.provider)
            return await exchange_code(service, self.callback, code=code, code_verifier=consent.code_verifier)
        except GrantEnded:
            raise InvalidState(_("The consent of %(title)s is not valid any more. Try again.", title=title)) from None
        except ProviderError as error:
            message = _("%(title)s did not give access to the account: %(reason)s.", title=title, reason=error.message)
            raise InvalidState(message) from error


@action("/dashboard/calendars/oauth/<provider:name>", role="owner")
async def ask_for_consent(
    viewer: Viewer, fields: JsonObject, *, name: str, account_consent: AccountConsent
) -> Response:
    """Send the browser to the vendor, for a new calendar or to connect the account of one again.

    Browsers apply the policy of a form's page to every redirect after it, and vendors redirect among hosts of theirs,
    so that a page of its own leads there.
    """
    url, kept = await account_consent.begin(viewer, name, str(fields.get("calendar_id", "")))
    title, host = account_consent.kinds.get_title(name), urlsplit(url).netloc
    response = Response(await render("dashboard/calendars/leaving.html", location=url, title=title, host=host))
    COOKIE.set(response, kept.seal(account_consent.keyring), account_consent.settings)
    return response


@page("/dashboard/calendars/oauth", role="owner")
async def finish_consent(viewer: Viewer, account_consent: AccountConsent) -> Response:
    """Connect the account with whose code the vendor sends the browser back, once, for the user who began."""
    if not viewer.has_role("owner"):
        raise SupportForbidden if viewer.support is not None else PageForbidden
    try:
        calendar = await account_consent.finish(viewer, request.args)
        done = go_to("calendars_page", _("%(name)s is connected.", name=calendar.name))
    except NotFound:
        done = go_to("calendars_page", _("This calendar was removed meanwhile."), "failure")
    except ApiError as error:
        done = go_to("calendars_page", _describe(error), "failure")
    response = await redirect_to_next(done, viewer)
    COOKIE.delete(response, account_consent.settings)
    return response


def _get_asker(viewer: Viewer) -> str:
    return f"{viewer.organization_id} {viewer.user.id}"


def _parse_calendar_id(text: str) -> UUID:
    calendar_id = parse_id(text)
    if calendar_id is None:
        raise NotFound
    return calendar_id


def _describe(error: ApiError) -> str:
    """Return the reason why an account was not connected."""
    if isinstance(error, InvalidState):
        return error.detail
    reasons = "; ".join(_(each["message"]) for each in error.errors) or _(error.detail)
    return _("The account was not connected: %(reason)s.", reason=reasons.rstrip("."))
