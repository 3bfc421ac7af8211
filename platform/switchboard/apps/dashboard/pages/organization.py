"""The settings of an organization: name, time zone, language, and logo for owners, and all of a tenant file for the
operator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import BaseModel, JsonValue
from quart import Response

from switchboard.apps.dashboard.blueprint import Next, action, dashboard, go_to, page
from switchboard.apps.dashboard.console.queries import ConsoleQueries
from switchboard.apps.dashboard.forms.form import Files, Form
from switchboard.apps.dashboard.forms.policy import list_policy_groups, policy_to_form, read_policy, refuse_policy
from switchboard.apps.dashboard.ui.opening_hours import list_timezones
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.apps.tenant_files.apply import update_organization
from switchboard.apps.tenant_files.export import export_tenant_file
from switchboard.apps.tenant_files.policy_faults import list_policy_faults
from switchboard.engine.providers import editing
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import LANGUAGES
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.pipeline import inject
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import ExtensionKind, Registry
from switchboard.resources.identity import logos
from switchboard.resources.identity.logos import load_logo
from switchboard.resources.identity.models import Organization

MAX_NAME = 255


class LanguageChoice(BaseModel):
    """A language of the dashboard, None for the browser's or the organization's."""

    language: Literal["en", "de", "es", "fr"] | None = None


@dataclass(frozen=True, slots=True)
class OrganizationEditor:
    """Parts of the process that change an organization."""

    settings: Settings
    database: Database
    registry: Registry
    queries: ConsoleQueries


@page("/dashboard/console/organizations/<organization_id>/settings", role="superadmin")
async def organization_page(organization_id: UUID, editor: OrganizationEditor, form: Form) -> str:
    """Show an organization's settings, as its tenant file has them."""
    organization = await editor.queries.get(Organization, organization_id)
    values: JsonObject = {
        "name": organization.name,
        "timezone": organization.timezone,
        "policy": policy_to_form(organization.policy),
    }
    return await render(
        "dashboard/organization.html",
        organization=organization,
        form=form.starting_with(values),
        groups=list_policy_groups(),
        timezones=list_timezones(),
        file=editing.find_tenant_file(editor.settings.tenants_dir, organization.slug),
    )


@action("/dashboard/console/organizations/<organization_id>/settings", role="superadmin", invalid=organization_page)
async def save_organization(
    viewer: Viewer, organization_id: UUID, fields: JsonObject, editor: OrganizationEditor
) -> Next:
    organization = await editor.queries.get(Organization, organization_id)
    async with editor.database.read(organization_id) as session:
        rows = await editing.list_providers(session)
    editing.require_no_file(editor.settings.tenants_dir, organization.slug)
    name, timezone = _read_profile(fields)
    typed = fields.get("policy")
    policy = read_policy(typed if isinstance(typed, dict) else {})
    detectors = {row.name for row in rows if row.capability == ExtensionKind.PRIVATE_DATA_DETECTOR}
    if faults := list_policy_faults(policy, editor.registry, detectors):
        raise refuse_policy(faults)
    await update_organization(
        editor.database, organization_id, actor=viewer.operator, name=name, timezone=timezone, policy=policy
    )
    return go_to("organization_page", _("Saved."), organization_id=organization_id)


def _read_profile(fields: Mapping[str, JsonValue]) -> tuple[str, str]:
    """Return name and time zone. Raises `ValidationFailed`."""
    name, timezone = str(fields.get("name", "")).strip(), str(fields.get("timezone", ""))
    if not 0 < len(name) <= MAX_NAME:
        raise ValidationFailed.field("name", _("must have 1 to %(max_name)s characters", max_name=MAX_NAME))
    if timezone not in available_timezones():
        raise ValidationFailed.field("timezone", _("is not an IANA time zone"))
    return name, timezone


@page("/dashboard/general", role="owner")
async def general_settings_page(session: ReadSession, settings: Settings, form: Form) -> str:
    """Show what owners set for their organization."""
    organization = await session.get_one(Organization, session.organization_id)
    return await render(
        "dashboard/general.html",
        form=form.starting_with({"name": organization.name, "timezone": organization.timezone}),
        look=Form({"language": organization.language}),
        organization=organization,
        timezones=list_timezones(),
        languages=list(LANGUAGES.items()),
        file=editing.find_tenant_file(settings.tenants_dir, organization.slug),
    )


@action("/dashboard/general", role="owner", invalid=general_settings_page)
async def save_general_settings(
    session: ReadSession, viewer: Viewer, fields: JsonObject, editor: OrganizationEditor
) -> Next:
    """Save what owners set for their organization."""
    organization = await session.get_one(Organization, session.organization_id)
    editing.require_no_file(editor.settings.tenants_dir, organization.slug)
    name, timezone = _read_profile(fields)
    await update_organization(
        editor.database, viewer.organization_id, actor=viewer.principal.actor, name=name, timezone=timezone
    )
    return go_to("general_settings_page", _("Saved."))


@action("/dashboard/general/language", role="owner", invalid=general_settings_page)
async def save_language(session: WriteSession, data: LanguageChoice) -> Next:
    """Save the language of users who chose none. No tenant file sets it."""
    organization = await session.get_one(Organization, session.organization_id)
    organization.language = data.language
    record_audit(session, AuditAction.ORGANIZATION_UPDATED, organization.id, fields=("language",))
    return go_to("general_settings_page", _("Saved."))


@action("/dashboard/general/logo", role="owner", invalid=general_settings_page)
async def upload_logo(session: WriteSession, files: Files) -> Next:
    file = files.get("logo")
    if file is None or not file.filename:
        raise ValidationFailed.field("logo", _("Choose a file."))
    await logos.save_logo(session, file.read(logos.MAX_LOGO_BYTES + 1))
    return go_to("general_settings_page", _("Saved."))


@action("/dashboard/general/logo/remove", role="owner")
async def remove_organization_logo(session: WriteSession) -> Next:
    await logos.remove_logo(session)
    return go_to("general_settings_page", _("The logo was removed."), "warning")


@action("/dashboard/console/organizations/<organization_id>/tenant-file", role="superadmin")
async def download_tenant_file(
    viewer: Viewer, organization_id: UUID, editor: OrganizationEditor, keyring: KeyRing
) -> Response:
    """Download the organization's settings as a tenant file, without secrets."""
    organization = await editor.queries.get(Organization, organization_id)
    async with editor.database.write(organization_id, actor=viewer.operator) as session:
        text = await export_tenant_file(session, editor.registry, keyring)
    name = f"{organization.slug or 'organization'}.toml"
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, headers=disposition, content_type="application/toml; charset=utf-8")


# The logo, for anybody who has the address: invitations and the widget's demo page show it, too.


FOREVER = "public, max-age=31536000, immutable"


@dashboard.get("/dashboard/logos/<uuid:organization_id>/<digest>")
@inject
async def organization_logo(organization_id: UUID, digest: str, database: Database) -> Response:
    """Serve a logo. Its address changes with its content; a browser that opens it alone runs nothing of it."""
    logo = await load_logo(database, organization_id, digest)
    response = Response(logo.content, content_type=logo.media_type)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = FOREVER
    return response
