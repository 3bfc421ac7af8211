"""The catalogs of translations: complete, current, and with the placeholders of their messages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages import Catalog, Message
from switchboard.apps.dashboard.catalog_files import (
    TRANSLATED,
    build_plugin_template,
    get_plugin_catalog_path,
    update_catalog,
)
from switchboard.foundation.languages import get_catalog_path, read_catalog

from tests.languages.catalogs import build_template, list_translated_plugins, load_plugins

REGISTRY = load_plugins()
PLUGINS = {plugin.name: plugin for plugin in list_translated_plugins(REGISTRY)}
CATALOGS = [
    *((get_catalog_path(language), language) for language in TRANSLATED),
    *((get_plugin_catalog_path(plugin, language), language) for plugin in PLUGINS.values() for language in TRANSLATED),
]
"""Every catalog: its file and its language."""
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|\{\w+[^}]*\}|</?[a-z]+[^>]*>|`[^`]+`")


@pytest.fixture(scope="module")
def template() -> Catalog:
    return build_template()


def iterate_translations(catalog: Catalog) -> Iterator[tuple[Message, list[str], list[str]]]:
    """Yield each message with its English forms and its translated forms."""
    for message in catalog:
        english = list(message.id) if isinstance(message.id, tuple | list) else [message.id]
        forms = message.string if isinstance(message.string, tuple | list) else [message.string]
        translated = [str(form or "") for form in forms]
        if english != [""]:
            yield message, english, translated


def test_every_plugin_of_the_repository_has_catalogs() -> None:
    assert {plugin.distribution for plugin in PLUGINS.values()} == {
        f"switchboard-voice-{folder.parent.name.replace('_', '-')}"
        for folder in Path(__file__).parents[2].glob("plugins/*/pyproject.toml")
    }


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalog_has_the_messages_of_the_code(language: str, template: Catalog) -> None:
    path = get_catalog_path(language)
    assert path.read_bytes() == update_catalog(path, language, template), "run `make catalogs`"


@pytest.mark.parametrize("language", TRANSLATED)
@pytest.mark.parametrize("name", PLUGINS)
def test_a_catalog_of_a_plugin_has_its_texts(name: str, language: str) -> None:
    path = get_plugin_catalog_path(PLUGINS[name], language)
    template = build_plugin_template(REGISTRY, PLUGINS[name])
    assert path.read_bytes() == update_catalog(path, language, template), "run `make catalogs`"


@pytest.mark.parametrize(("path", "language"), CATALOGS)
def test_a_translation_keeps_placeholders_and_markup(path: Path, language: str) -> None:
    broken = []
    for _, english, translated in iterate_translations(read_catalog(path, language)):
        known = {frozenset(PLACEHOLDER.findall(form)) for form in english}
        broken += [form for form in translated if form and frozenset(PLACEHOLDER.findall(form)) not in known]
    assert not broken, "\n".join(broken)
