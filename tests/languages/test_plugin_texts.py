"""Texts of plugins on the dashboard's pages, in the languages of their catalogs."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from babel.messages.pofile import write_po
from structlog.testing import capture_logs
from switchboard.apps.dashboard.catalog_files import TRANSLATED, get_plugin_catalog_path, update_plugin_catalogs
from switchboard.foundation import languages
from switchboard.foundation.languages import add_plugin_catalogs, load_catalog, read_catalog
from switchboard.plugin_sdk.registry import Plugin, Registry

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person
from tests.languages.catalogs import load_plugins

GERMAN = {"Barn owl": "Schleiereule", "The owl's perch.": "Der Ast der Eule.", "Hoot": "Rufen"}
PLUGIN = '''
from pydantic import Field
from switchboard.plugin_sdk import ActionParams, AutomationAction, LLMProvider, ProviderSettings, hookimpl


class OwlSettings(ProviderSettings):
    perch: str = Field("beam", description="The owl's perch.")


class Owl(LLMProvider):
    name, title, Settings = "barn_owl", "Barn owl", OwlSettings

    async def check(self):
        pass

    async def chat(self, request):
        return
        yield


class HootParams(ActionParams):
    name: str = Field(description="The owl's perch.")


class Hoot(AutomationAction):
    """
    Hoot
    twice.
    """

    name, title, Params = "barn_hoot", "Hoot", HootParams

    async def run(self, context, params):
        return {}


@hookimpl
def llm_providers():
    return [Owl]


@hookimpl
def automation_actions():
    return [Hoot]
'''
OWL = "/dashboard/providers/llm/barn_owl"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A package of a plugin from outside, with a name of its own in each test, and no catalogs of other plugins."""
    monkeypatch.setattr(languages, "_plugin_packages", {})
    name = f"owl_of_{request.node.name}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.fixture
def plugin(module: ModuleType) -> Plugin:
    """The plugin with its catalogs."""
    registry = Registry()
    plugin = registry.add("owl", module)
    assert not plugin.faults
    missing = update_plugin_catalogs(registry, plugin)
    assert [*missing] == [get_plugin_catalog_path(plugin, language) for language in TRANSLATED]
    path = get_plugin_catalog_path(plugin, "de")
    catalog = read_catalog(path, "de")
    assert {message.id for message in catalog if message.id} == {*GERMAN, "Perch", "Hoot twice."}
    assert missing[path] == len(GERMAN) + 2
    for text, translation in GERMAN.items():
        catalog[text].string = translation
    with path.open("wb") as file:
        write_po(file, catalog)
    return plugin


@pytest.fixture
def registry(module: ModuleType) -> Registry:
    registry = load_plugins()
    assert not registry.add("owl", module).faults
    return registry


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    owner = await people.join(caller.organization_id)
    owner.headers["Accept-Language"] = "de"
    return owner


async def test_texts_of_built_in_plugins_are_translated(owner: Person) -> None:
    form = (await owner.get("/dashboard/providers/llm/openai")).html
    assert "API-Schlüssel" in form
    assert "An API key, if the vendor needs one." not in form
    assert "Ein API-Schlüssel, wenn der Anbieter einen verlangt." in form
    listed = (await owner.get("/dashboard/providers")).html
    assert "OpenAI-kompatibler Server" in listed
    assert "OpenAI-compatible server" not in listed
    owner.headers["Accept-Language"] = "fr"
    assert "Clé d’API" in (await owner.get("/dashboard/providers/llm/openai")).html
    owner.headers["Accept-Language"] = "es"
    assert "Clave de API" in (await owner.get("/dashboard/providers/llm/openai")).html


async def test_texts_of_a_plugin_from_outside_are_translated(plugin: Plugin, owner: Person) -> None:
    form = (await owner.get(OWL)).html
    assert "<h1>Schleiereule</h1>" in form
    assert "Der Ast der Eule." in form
    assert ">Perch<" in form, "has no translation yet"
    assert ">Schleiereule</a>" in (await owner.get("/dashboard/providers")).html
    assert ">Rufen</option>" in (await owner.get("/dashboard/automations/new")).html
    assert (await owner.post(OWL, {"settings.perch": "roof"})).status == 303
    saved = (await owner.get("/dashboard/providers")).html
    assert "<strong>Schleiereule</strong>" in saved
    assert "„Schleiereule“" in saved or "Schleiereule wurde gespeichert" in saved
    owner.headers["Accept-Language"] = "en"
    assert "<h1>Barn owl</h1>" in (await owner.get(OWL)).html


async def test_a_plugin_without_catalogs_is_english(owner: Person) -> None:
    form = (await owner.get(OWL)).html
    assert "<h1>Barn owl</h1>" in form
    assert "The owl&#39;s perch." in form
    assert ">None<" not in form, "the settings have no docstring"
    assert "Speichern" in form or "hinzufügen" in form, "the rest of the page is German"


def test_a_broken_catalog_is_left_out(plugin: Plugin, module: ModuleType) -> None:
    path = get_plugin_catalog_path(plugin, "de")
    path.write_bytes(path.read_bytes().replace(b"Schleiereule", b"\xff\xfe"))
    with capture_logs() as logs:
        add_plugin_catalogs([module.__name__])
        assert load_catalog("de").translations.gettext("Barn owl") == "Barn owl"
    assert [(log["package"], log["language"]) for log in logs] == [(module.__name__, "de")]


def test_an_update_keeps_translations_and_drops_what_is_no_more(plugin: Plugin, module: ModuleType) -> None:
    path = get_plugin_catalog_path(plugin, "de")
    module.OwlSettings.model_fields["perch"].description = "The perch of the owl."
    module.OwlSettings.model_rebuild(force=True)
    registry = Registry()
    update_plugin_catalogs(registry, registry.add("owl", module))
    translations = {message.id: message.string for message in read_catalog(path, "de") if message.id}
    assert translations["Barn owl"] == "Schleiereule"
    assert translations["The perch of the owl."] == ""
