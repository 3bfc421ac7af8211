"""A plugin created from the template: it installs, passes its own tests in its own folder, and is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from switchboard.plugin_sdk.scaffold import TEMPLATE, create_plugin

FIND = """
from switchboard.plugin_sdk import TextToSpeechProvider
from switchboard.plugin_sdk.registry import Registry

registry = Registry.discover()
(plugin,) = [plugin for plugin in registry.plugins if plugin.name == "night_owl"]
print(plugin, registry.find_provider_class(TextToSpeechProvider, "night_owl"))
"""


@pytest.fixture(scope="module")
def created_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_plugin("night_owl", tmp_path_factory.mktemp("plugins"))


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


def run_python(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_plugin_passes_its_own_tests(created_plugin: Path, site: Path) -> None:
    assert "passed" in run_python(
        site,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        str(created_plugin / "pyproject.toml"),
        str(created_plugin / "tests"),
    )


def test_the_plugin_is_discovered_with_its_version(site: Path) -> None:
    plugins = run_python(site, "-c", FIND)
    assert (
        "distribution='switchboard-night-owl', version='0.1.0', provides=['text_to_speech night_owl'], faults=[]"
        in plugins
    )
    assert "switchboard_night_owl.NightOwlVoice" in plugins


def test_no_name_of_the_template_remains(created_plugin: Path) -> None:
    files = [path for path in created_plugin.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) == 4
    for path in files:
        assert "acme" not in (path.name + path.read_text()).lower()


@pytest.mark.parametrize("name", ["", "Owl", "night-owl", "9owls", "owl_", "../owl", "owl\n", "nüsse"])
def test_a_name_that_python_cannot_import_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be a plugin's name"):
        create_plugin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_not_overwritten(created_plugin: Path) -> None:
    with pytest.raises(FileExistsError):
        create_plugin("night_owl", created_plugin.parent)


def test_the_template_module_is_short() -> None:
    assert len((TEMPLATE / "switchboard_acme.py").read_text().splitlines()) <= 70
