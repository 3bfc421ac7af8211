"""Extract the messages of the dashboard, its e-mails, and the plugins, and update the catalogs: `make catalogs`.

Messages are the marked texts of templates, scripts, and Python (`_`, `ngettext`, `LazyText`), and what the dashboard
looks up though the code does not mark it: texts of errors, descriptions of schemas, and words for values of the API,
whose context is what they describe.
"""

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import switchboard.apps.server.app  # noqa: F401 - imports the module of every error
from babel.messages import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from switchboard.apps.dashboard.catalog_files import TRANSLATED, update_catalog, update_plugin_catalogs
from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.plugin_texts import describe_action, list_field_texts
from switchboard.apps.dashboard.forms.policy import list_policy_groups
from switchboard.apps.dashboard.ui.labels import VALUES, name_value
from switchboard.apps.dashboard.ui.rendering import action_label, field_name
from switchboard.apps.visitor_pages.labels import CONTEXT, LABELS
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.languages import get_catalog_path
from switchboard.foundation.outbound import MESSAGES
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.principal import SCOPES
from switchboard.plugin_sdk import TextToSpeechSettings
from switchboard.plugin_sdk.hooks import ENTRY_POINT_GROUP
from switchboard.plugin_sdk.registry import BUILT_IN as BUILT_IN_PLUGINS
from switchboard.plugin_sdk.registry import Plugin, Registry
from switchboard.resources.agents.templates import load_templates
from switchboard.resources.automations.actions import automation_actions
from switchboard.resources.disclosure.presets import load_presets

PLATFORM: Final = Path(__file__).parents[2] / "platform" / "switchboard"
DASHBOARD: Final = PLATFORM / "apps" / "dashboard"
MARKED: Final = {**DEFAULT_KEYWORDS, "LazyText": None}
ERRORS: Final[dict[str, Any]] = {
    "ApiError": None,
    "BadRequest": None,
    "Conflict": None,
    "Forbidden": None,
    "IdentityError": None,
    "InvalidState": None,
    "NotFound": None,
    "RateLimited": None,
    "Unavailable": None,
    "ValidationFailed": None,
    "field": (2,),
}
"""Errors that services raise and the dashboard shows, by the place of their text; `field` is of `ValidationFailed`."""
COMMENT: Final = "Translations of Switchboard's dashboard. Update with `make catalogs`."


def build_template() -> Catalog:
    """Return a catalog of all messages, without translations."""
    catalog = Catalog(project="Switchboard", header_comment=f"# {COMMENT}", fuzzy=False)
    for place, message, context in iterate_messages():
        singular = message[0] if isinstance(message, tuple) else message
        if singular and any(letter.isalpha() for letter in singular):
            catalog.add(message, locations=[(place, None)], context=context)  # type: ignore[list-item]
    return catalog


def iterate_messages() -> Iterator[tuple[str, str | tuple[str, ...], str | None]]:
    """Yield each message with its file, and its context if it has one."""
    jinja = {"**/*.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
    for folder, methods, options, keywords in (
        (DASHBOARD, [("**/*.html", "jinja2.ext:babel_extract")], jinja, DEFAULT_KEYWORDS),
        (DASHBOARD, [("**/*.py", "python"), ("static/js/**.js", "javascript")], {}, MARKED),
        (PLATFORM / "foundation", [("**.py", "python")], {}, ERRORS),
        (PLATFORM / "resources", [("**.py", "python")], {}, {**MARKED, **ERRORS}),
    ):
        found = extract_from_dir(folder, methods, options, keywords)
        for file, _line, message, _comments, context in sorted(found, key=lambda one: (one[0], one[1])):
            yield str((folder / file).relative_to(PLATFORM)), message, context
    # In the order of the alphabet: that of subclasses depends on what was imported first.
    for text in sorted(set(_list_looked_up())):
        yield "looked up", text, None
    for text in LABELS.values():
        yield "apps/visitor_pages/labels.py", text, CONTEXT
    for noun, values in VALUES.items():
        for value in values:
            yield "looked up", name_value(value, noun), noun


def _list_looked_up() -> Iterator[str]:
    for kind in _list_errors(ApiError):
        if kind.__module__.startswith("switchboard."):
            yield from (kind.title, kind.default_detail)
    for group in list_policy_groups():
        yield from (group.title, group.about, *list_field_texts(group.fields))
    for action in automation_actions():
        yield from (action.title, describe_action(action))
        yield from list_field_texts(schema_form.list_schema_fields(action.Params))
    # Settings that every plugin of a capability may derive from.
    yield from list_field_texts(schema_form.list_schema_fields(TextToSpeechSettings))
    for template in load_templates().values():
        yield from (template.title, template.description)
    yield from (preset.jurisdiction for preset in load_presets().values())
    yield from (detector.title for detector in BUILT_IN)
    yield from (str(kind.__doc__).rstrip(".") for kind in CATALOG.values())
    yield from SCOPES.values()
    yield from MESSAGES.values()
    yield from map(action_label, AuditAction)
    yield from map(field_name, ("name", "email", "password", "phone_number", "file", "files", "people", "tag"))
    yield from ("yes", "no")


def _list_errors(base: type[ApiError]) -> Iterator[type[ApiError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _list_errors(kind)


def load_plugins() -> Registry:
    """Load the plugins of this repository, whatever else is installed."""
    return Registry.discover(
        entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.dist and entry.dist.name in BUILT_IN_PLUGINS
    )


def list_translated_plugins(registry: Registry) -> list[Plugin]:
    """List the plugins that have catalogs: all but the platform's own actions, whose texts the dashboard's have."""
    return [plugin for plugin in registry.plugins if not plugin.package.startswith("switchboard.")]


def main() -> None:
    """Update every catalog."""
    template, registry = build_template(), load_plugins()
    for language in TRANSLATED:
        path = get_catalog_path(language)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(update_catalog(path, language, template))
    for plugin in list_translated_plugins(registry):
        update_plugin_catalogs(registry, plugin)


if __name__ == "__main__":
    main()
