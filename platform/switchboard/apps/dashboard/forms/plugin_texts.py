"""Texts of a plugin that the dashboard shows: titles, and labels and descriptions of settings and parameters.

They are messages of the plugin's own catalogs (docs/plugins/translations.md).
"""

import re
from collections.abc import Iterator, Sequence

from switchboard.apps.dashboard.forms import schema_form, setting_rows
from switchboard.apps.dashboard.forms.schema_form import SchemaField
from switchboard.foundation.languages import DEFAULT_LANGUAGE, use_language
from switchboard.plugin_sdk import ActionParams, AutomationAction, CalendarProvider, ProviderSettings
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import CAPABILITIES, Plugin, Registry


def describe_settings(kind: type[Configurable]) -> str:
    """Return the English text above the form of a provider's or an extension's settings; empty without one."""
    return "" if kind.Settings is ProviderSettings else _unwrap(kind.Settings.__doc__)


def describe_account(kind: type[CalendarProvider[ProviderSettings]]) -> str:
    """Return the English text above the form of a calendar's account; empty without one."""
    return "" if kind.Account is ProviderSettings else _unwrap(kind.Account.__doc__)


def describe_action(action: type[AutomationAction[ActionParams]]) -> str:
    """Return the English text above the parameters of an action; empty without one."""
    return _unwrap(action.__doc__)


def list_plugin_texts(registry: Registry, plugin: Plugin) -> list[str]:
    """Return the English texts of a plugin, each once."""
    texts: list[str] = []
    with use_language(DEFAULT_LANGUAGE):
        for provided in plugin.provides:
            capability, _, name = provided.partition(" ")
            found = registry.find_class(CAPABILITIES[capability], name) if capability in CAPABILITIES else None
            texts += _iterate_class_texts(found) if found is not None else ()
    return [text for text in dict.fromkeys(texts) if any(letter.isalpha() for letter in text)]


def list_field_texts(fields: Sequence[SchemaField]) -> list[str]:
    """Return the labels and descriptions of fields."""
    return [text for field in fields for text in (field.label, field.hint)]


def _iterate_class_texts(kind: type[Configurable]) -> Iterator[str]:
    yield from (kind.title, describe_settings(kind))
    yield from list_field_texts(setting_rows.list_plain_fields(kind.Settings))
    for setting in setting_rows.list_rows_settings(kind.Settings):
        yield from (setting.label, setting.hint, setting.title)
        yield from list_field_texts([*setting.fields, *setting.secrets])
    if issubclass(kind, CalendarProvider):
        yield describe_account(kind)
        yield from list_field_texts(schema_form.list_schema_fields(kind.Account))
    if issubclass(kind, AutomationAction):
        yield describe_action(kind)
        yield from list_field_texts(schema_form.list_schema_fields(kind.Params))


def _unwrap(docstring: str | None) -> str:
    """Return the paragraphs of a docstring, each in one line."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", docstring or "")).strip()
