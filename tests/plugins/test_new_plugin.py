"""Plugins created from the templates: each kind passes its own tests, and one installs and is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from switchboard.plugin_sdk.scaffold import KINDS, create_plugin

FIND = """
from switchboard.plugin_sdk import TextToSpeechProvider
from switchboard.plugin_sdk.registry import Registry

registry = Registry.discover()
(plugin,) = [plugin for plugin in registry.plugins if plugin.name == "night_owl"]
print(plugin, registry.find_provider_class(TextToSpeechProvider, "night_owl"))
"""
LOAD = """
import sys
from importlib import import_module
from switchboard.plugin_sdk.registry import Registry

for name in sys.argv[1:]:
    plugin = Registry().add(name, import_module(f"switchboard_{name}"))
    print(name, *plugin.provides, *plugin.faults)
"""
PROVIDED = {
    "llm": "llm owl_llm",
    "tts": "text_to_speech owl_tts",
    "stt": "speech_to_text owl_stt",
    "embedding": "embedding owl_embedding",
    "vector_store": "vector_store owl_vector_store",
    "telephony": "telephony owl_telephony",
    "turn_detector": "turn_detector owl_turn_detector",
    "calendar": "calendar owl_calendar",
    "action": "automation_action owl_action_note",
    "tool": "agent_tool owl_tool_orders",
    "watcher": "event_watcher owl_watcher_calls",
}
MAX_LINES = 200


@pytest.fixture(scope="module")
def created_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_plugin("night_owl", tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A plugin of each kind, in one folder."""
    folder = tmp_path_factory.mktemp("kinds")
    return [create_plugin(f"owl_{kind}", folder, kind) for kind in KINDS]


@pytest.fixture(scope="module")
def site(created_plugin: Path) -> Path:
    """Installation folder that only these tests use."""
    target = created_plugin.parent / "site"
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(created_plugin)],
        check=True,
        capture_output=True,
    )
    return target


def run_python(folder: Path, *arguments: str, path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.system
def test_each_kind_passes_its_own_tests(plugins: list[Path]) -> None:
    folder, tests = plugins[0].parent, [str(plugin / "tests") for plugin in plugins]
    options = ["-p", "no:cacheprovider", "--rootdir", str(folder), "-c", str(plugins[0] / "pyproject.toml")]
    assert "passed" in run_python(folder, "-m", "pytest", *options, *tests, path=":".join(map(str, plugins)))


def test_each_kind_is_loaded_without_a_fault(plugins: list[Path]) -> None:
    names = [f"owl_{kind}" for kind in KINDS]
    loaded = run_python(plugins[0], "-c", LOAD, *names, path=":".join(map(str, plugins)))
    assert loaded.splitlines() == [f"owl_{kind} {provided}" for kind, provided in PROVIDED.items()]


@pytest.mark.system
def test_an_installed_plugin_is_discovered_with_its_version(site: Path) -> None:
    plugins = run_python(site, "-c", FIND, path=str(site))
    assert (
        "distribution='switchboard-night-owl', version='0.1.0', provides=['text_to_speech night_owl'], faults=[]"
        in plugins
    )
    assert "switchboard_night_owl.NightOwlVoice" in plugins


def test_no_name_of_the_template_remains(plugins: list[Path]) -> None:
    files = [path for plugin in plugins for path in plugin.rglob("*") if path.is_file()]
    for path in (path for path in files if "__pycache__" not in path.parts):
        assert "acme" not in (path.name + path.read_text()).lower()
        assert len(path.read_text().splitlines()) <= MAX_LINES


def test_each_plugin_has_documentation_and_continuous_integration(plugins: list[Path]) -> None:
    for plugin in plugins:
        names = {path.relative_to(plugin).as_posix() for path in plugin.rglob("*")}
        assert names >= {"README.md", "pyproject.toml", ".github/workflows/test.yml", "tests/conftest.py"}


@pytest.mark.parametrize("name", ["", "Owl", "night-owl", "9owls", "owl_", "../owl", "owl\n", "nüsse"])
def test_a_name_that_python_cannot_import_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be a plugin's name"):
        create_plugin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_not_overwritten(created_plugin: Path) -> None:
    with pytest.raises(FileExistsError):
        create_plugin("night_owl", created_plugin.parent)
