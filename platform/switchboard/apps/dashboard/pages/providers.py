"""Providers and extensions: list by capability, order, and settings."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quart import request, url_for
from redis.asyncio import Redis

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms import schema_form, setting_rows
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.forms.plugin_texts import describe_settings
from switchboard.apps.dashboard.forms.rows import change_rows
from switchboard.apps.dashboard.ui.formats import full_day
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer, get_sending_page
from switchboard.apps.model_ends import ModelEndCheck, list_ends_without_asking
from switchboard.apps.running_processes import list_restarts
from switchboard.engine.providers import editing
from switchboard.engine.providers.checks import SettingsCheck
from switchboard.engine.providers.configuration import ProviderSpec, find_process_fault
from switchboard.engine.providers.instances import Extensions, configure_extensions
from switchboard.engine.providers.model_ends import ModelEnd
from switchboard.engine.providers.models import (
    OWN_PROCESS,
    REMOTE_CAPABILITIES,
    SHARED_PROCESS,
    ProcessMode,
    ProviderConfiguration,
)
from switchboard.engine.providers.turn_prediction import find_default_detector
from switchboard.foundation.database import Database, ReadSession, WriteSession, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import InvalidState, NotFound, ValidationFailed
from switchboard.plugin_sdk import CheckedPart, JsonObject, ProviderError
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import CAPABILITIES, AnyCapability, Capability, ExtensionKind, Registry
from switchboard.resources.agents.queries import list_agents_redacting, list_agents_using_provider
from switchboard.resources.automations.queries import list_automations_using
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.knowledge_bases import service as knowledge_bases
from switchboard.resources.knowledge_bases.queries import list_oldest_knowledge_bases
from switchboard.resources.phone_numbers.queries import list_numbers_at_carrier

CHECK_SECONDS = 20
MOST_NAMED = 5
NAMES: Mapping[AnyCapability, tuple[str, str]] = {
    Capability.TELEPHONY: (
        LazyText("Phone carrier"),
        LazyText("Places and takes calls, sends text messages, and sells phone numbers."),
    ),
    Capability.SPEECH_TO_TEXT: (LazyText("Speech to text"), LazyText("Transcribes callers.")),
    Capability.TEXT_TO_SPEECH: (LazyText("Text to speech"), LazyText("Speaks for agents.")),
    Capability.LLM: (LazyText("Language model"), LazyText("Decides what agents say and do.")),
    Capability.EMBEDDING: (LazyText("Embeddings"), LazyText("Embeds documents and questions for knowledge search.")),
    Capability.VECTOR_STORE: (LazyText("Vector store"), LazyText("Stores the embeddings of knowledge bases.")),
    Capability.TURN_DETECTOR: (
        LazyText("Turn detection"),
        LazyText("Judges by their voice whether callers have finished."),
    ),
    Capability.CALENDAR: (LazyText("Calendars"), LazyText("Have the appointments that agents book.")),
    ExtensionKind.AUTOMATION_ACTION: (
        LazyText("Automation actions"),
        LazyText("Actions of plugins, and their settings."),
    ),
    ExtensionKind.AGENT_TOOL: (
        LazyText("Agent tools"),
        LazyText("Tools of plugins that every agent has, with the organization's settings."),
    ),
    ExtensionKind.EVENT_WATCHER: (
        LazyText("Event watchers"),
        LazyText("Parts of plugins that receive events, and their settings."),
    ),
    ExtensionKind.PRIVATE_DATA_DETECTOR: (
        LazyText("Private data"),
        LazyText("Detectors of plugins that agents may redact with, and their settings."),
    ),
}
PREFIX = "settings."
PROCESSES: tuple[tuple[ProcessMode, str], ...] = (
    (SHARED_PROCESS, LazyText("The platform's process")),
    (OWN_PROCESS, LazyText("A process of its own")),
)


@dataclass(frozen=True, slots=True)
class ProviderEditor:
    """Parts of the process that the settings of a provider need."""

    settings: Settings
    registry: Registry
    keyring: KeyRing

    def find_class(self, capability: str, name: str) -> type[Configurable]:
        """Return the class of a provider or an extension. Raises `NotFound`."""
        kind = self.registry.find_class(_capability(capability), name)
        if kind is None:
            raise NotFound
        return kind


@page("/dashboard/providers", role="owner")
async def providers_page(
    session: ReadSession, viewer: Viewer, settings: Settings, extensions: Extensions, redis: Redis
) -> str:
    """List the providers by capability, and the extensions that have settings by kind.

    Superadmins read which running processes have not loaded the plugins that this one has.
    """
    found = await editing.list_providers(session)
    return await render(
        "dashboard/providers/list.html",
        names=NAMES,
        parts=[part for capability in Capability if (part := _part(extensions.registry, capability, found))],
        ends={
            row.id: [describe_end(end) for end in await list_ends_without_asking(session, extensions.registry, row)]
            for row in found
        },
        extension_parts=[await _extension_part(session, extensions.registry, kind, found) for kind in ExtensionKind],
        file=find_own_file(settings, viewer),
        processes=REMOTE_CAPABILITIES if viewer.has_role("superadmin") else (),
        restarts=await list_restarts(redis, extensions.registry) if viewer.has_role("superadmin") else (),
    )


def _part(registry: Registry, capability: Capability, found: list[ProviderConfiguration]) -> dict[str, object]:
    """Return a capability with the organization's providers, in order, and the providers that it could add. `default`
    serves calls although the organization has chosen none. Nothing is left of calendars that need no settings here.
    """
    rows = [row for row in found if row.capability == capability]
    taken = {row.name for row in rows}
    others = [kind for kind in registry.list_classes(capability) if kind.name not in taken]
    if capability is Capability.CALENDAR:
        others = [kind for kind in others if kind.Settings.model_fields]
        if not rows and not others:
            return {}
    return {
        "capability": capability,
        "chosen": [(row, registry.find_class(capability, row.name)) for row in rows],
        "others": others,
        "default": find_default_detector(registry, found) if capability is Capability.TURN_DETECTOR else None,
    }


def describe_end(end: ModelEnd) -> str:
    """Return the warning of a model that ends."""
    return _(
        "The vendor ends the model %(model)s on %(day)s. Choose another model or provider.",
        model=end.model,
        day=full_day(end.day),
    )


async def _extension_part(
    session: ReadSession, registry: Registry, kind: ExtensionKind, found: list[ProviderConfiguration]
) -> dict[str, object]:
    """Return a kind of extension with the extensions that have settings, and the names of those that the organization
    has configured.
    """
    classes = registry.list_extension_classes(kind.base_class)
    with_settings = [extension for extension in classes if extension.Settings.model_fields]
    return {
        "kind": kind,
        "extensions": await configure_extensions(session, with_settings),
        "saved": {row.name for row in found if row.capability == kind},
    }


@page("/dashboard/providers/<capability>/<provider:name>", role="owner")
async def provider_page(
    session: ReadSession, viewer: Viewer, form: Form, *, capability: str, name: str, editor: ProviderEditor
) -> str:
    """Show a provider's settings. A stored secret is never shown."""
    place, kind = _capability(capability), editor.find_class(capability, name)
    row = await editing.find_provider(session, place, name)
    locked = frozenset() if viewer.has_role("superadmin") else editing.list_operator_settings(kind)
    made_up = frozenset(kind.initial_settings()) if row is None else frozenset()
    fields = [field for field in setting_rows.list_plain_fields(kind.Settings) if field.name not in made_up]
    rows, stored = setting_rows.list_rows_settings(kind.Settings), row.settings if row is not None else {}
    kept: JsonObject = {
        "settings": schema_form.values_to_form(fields, stored) | setting_rows.rows_to_form(rows, stored),
        "process": row.process if row is not None else SHARED_PROCESS,
    }
    form = form.starting_with(kept)
    return await render(
        "dashboard/providers/edit.html",
        form=form.with_labels(setting_rows.list_labels(fields, rows, form, prefix=PREFIX)),
        kind=kind,
        about=_(describe_settings(kind)),
        fields=fields,
        rows=rows,
        locked=locked,
        kept=editing.list_saved_secrets(editor.keyring, row),
        kept_keys=editing.list_saved_keys(editor.keyring, row),
        row=row,
        part=NAMES[place][0],
        processes=PROCESSES if viewer.has_role("superadmin") and capability in REMOTE_CAPABILITIES else (),
        capability=capability,
        in_setup=request.args.get("after") == "setup",
        file=find_own_file(editor.settings, viewer),
    )


@action("/dashboard/providers/<capability>/<provider:name>", role="owner", invalid=provider_page)
async def save_provider(
    session: WriteSession,
    viewer: Viewer,
    fields: JsonObject,
    *,
    capability: str,
    name: str,
    editor: ProviderEditor,
) -> Next:
    """Add a provider or an extension, or update its settings.

    Buttons that move or remove a row of the form save it as well, so that they need no script and lose no secret.
    """
    place, kind = _capability(capability), editor.find_class(capability, name)
    in_setup = request.args.get("after") == "setup"
    _require_no_file(editor.settings, viewer)
    settings, process = fields.get("settings", {}), fields.get("process", SHARED_PROCESS)
    rows, is_operator = setting_rows.list_rows_settings(kind.Settings), viewer.has_role("superadmin")
    change = str(fields.get("change", ""))
    typed = change_rows(settings if isinstance(settings, dict) else {}, change, [setting.name for setting in rows])
    fields["settings"] = typed
    values, faults = schema_form.read_form_values(setting_rows.list_plain_fields(kind.Settings), typed, prefix=PREFIX)
    locked = frozenset() if is_operator else editing.list_operator_settings(kind)
    typed_rows, stay, wrong_rows = setting_rows.read_rows(rows, typed, prefix=PREFIX, locked=locked)
    values |= typed_rows
    faults += wrong_rows
    if fault := find_process_fault(place, process):
        faults.append({"field": "process", "message": fault})
    if faults:
        raise ValidationFailed(_("Some settings are not valid."), errors=faults)
    mode: ProcessMode = OWN_PROCESS if process == OWN_PROCESS else SHARED_PROCESS
    wanted = ProviderSpec(place, name, values, mode, stay)
    try:
        await editing.put_provider(
            session, editor.registry, editor.keyring, wanted, by_operator=is_operator, as_first=in_setup
        )
    except ValidationFailed as error:
        problems = [(fault["field"], fault["message"]) for fault in error.errors]
        raise ValidationFailed(error.detail, errors=setting_rows.place_errors(rows, problems, values, PREFIX)) from None
    after = url_for("dashboard.overview" if in_setup else "dashboard.providers_page")
    if change:
        after = url_for("dashboard.provider_page", capability=capability, name=name, after=request.args.get("after"))
    return Next(after, _("%(name)s was saved. Use Check to test it.", name=_(kind.title) or name))


@action("/dashboard/providers/<capability>/<provider:name>/up", role="owner")
async def move_provider_up(
    session: WriteSession, viewer: Viewer, capability: str, name: str, settings: Settings
) -> Next:
    _require_no_file(settings, viewer)
    if capability not in set(Capability):
        raise NotFound
    await editing.move_provider_up(session, Capability(capability), name)
    return go_to("providers_page")


@action("/dashboard/providers/<capability>/<provider:name>/remove", role="owner")
async def remove_provider(
    session: WriteSession, viewer: Viewer, capability: str, name: str, settings: Settings
) -> Next:
    """Remove a provider, or an extension's settings, unless it is in use."""
    _require_no_file(settings, viewer)
    place = _capability(capability)
    if users := await _users(session, place, name):
        named, more = ", ".join(users[:MOST_NAMED]), len(users) - MOST_NAMED
        if more > 0:
            named += _(" and %(number)s more", number=more)
        raise InvalidState(
            _("%(name)s is still used by %(users)s. Choose another one there first.", name=name, users=named)
        )
    await editing.remove_provider(session, place, name)
    return go_to("providers_page", _("%(name)s was removed.", name=name), "warning")


async def _users(session: ReadSession, capability: AnyCapability, name: str) -> list[str]:
    """Return the names of the resources that need a provider or an extension."""
    match capability:
        case Capability.TELEPHONY:
            users = [number.phone_number for number in await list_numbers_at_carrier(session, name)]
        case Capability.SPEECH_TO_TEXT | Capability.TEXT_TO_SPEECH | Capability.LLM:
            found = await list_agents_using_provider(session, Capability(capability), name)
            users = [agent.name for agent in found]
        case Capability.EMBEDDING:
            users = [base.name for base in await list_oldest_knowledge_bases(session, name)]
        case Capability.VECTOR_STORE:
            users = [base.name for base in await knowledge_bases.resolve_knowledge_bases(session, None)]
        case ExtensionKind.AUTOMATION_ACTION:
            users = [automation.name for automation in await list_automations_using(session, name)]
        case ExtensionKind.PRIVATE_DATA_DETECTOR:
            users = [agent.name for agent in await list_agents_redacting(session, name)]
        case _:  # agents and events go on without turn detectors, tools, and watchers
            users = []
    return users


@action("/dashboard/providers/<capability>/<provider:name>/check", role="owner")
async def check_provider(
    viewer: Viewer, *, capability: str, name: str, check: SettingsCheck, database: Database, ends: ModelEndCheck
) -> Next | str:
    """Check the settings of a provider or an extension and show the result where the button was.

    The results of a carrier with several parts, such as trunks, and of a turn detector's measurement are a page.
    """
    began_at, place = now(), _capability(capability)
    kind = check.extensions.registry.find_class(place, name)
    title = (kind and _(kind.title)) or name
    parts: Sequence[CheckedPart] = ()
    notice, works, due = _("%(name)s works.", name=title), False, list[ModelEnd]()
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            parts = await check.check(viewer.organization_id, place, name)
            due = await ends.find(viewer.organization_id, place, name)
        works = all(part.works for part in parts)
        notice = " ".join((notice, *map(describe_end, due)))
    except ProviderError as error:
        notice = _("%(name)s does not work: %(message)s", name=title, message=error.message)
    except TimeoutError:
        notice = _(
            "%(name)s did not respond within %(check_seconds)s seconds.", name=title, check_seconds=CHECK_SECONDS
        )
    async with database.write(viewer.organization_id) as session:
        await editing.record_check(session, place, name, began_at, works=works)
    if parts:
        return await render(
            "dashboard/providers/checked.html", title=title, parts=parts, capability=capability, name=name
        )
    tone: NoticeTone = "failure" if not works else "warning" if due else "done"
    return Next(get_sending_page() or url_for("dashboard.providers_page"), notice, tone)


def find_own_file(settings: Settings, viewer: Viewer) -> Path | None:
    """Return the path of the tenant file that sets the organization's providers; None if there is none."""
    return editing.find_tenant_file(settings.tenants_dir, viewer.organization.slug if viewer.organization else None)


def _require_no_file(settings: Settings, viewer: Viewer) -> None:
    editing.require_no_file(settings.tenants_dir, viewer.organization.slug if viewer.organization else None)


def _capability(text: str) -> AnyCapability:
    if text not in CAPABILITIES:
        raise NotFound
    return CAPABILITIES[text]
