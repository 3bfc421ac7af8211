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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_plugin("night_owl", tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="module")
def site(made: Path) -> Path:
    """Installation folder that only these tests use."""
    target = made.parent / "site"
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(made)],
        check=True,
        capture_output=True,
    )
    return target


def python(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_passes_its_own_tests(made: Path, site: Path) -> None:
    assert "passed" in python(
        site, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(made / "pyproject.toml"), str(made / "tests")
    )


def test_it_is_found_with_its_version(site: Path) -> None:
    found = python(site, "-c", FIND)
    assert (
        "distribution='switchboard-night-owl', version='0.1.0', provides=['text_to_speech night_owl'], faults=[]"
        in found
    )
    assert "switchboard_night_owl.NightOwlVoice" in found


def test_nothing_of_the_templates_name_is_left(made: Path) -> None:
    written = [path for path in made.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(written) == 4
    for path in written:
        assert "acme" not in (path.name + path.read_text()).lower()


@pytest.mark.parametrize("name", ["", "Owl", "night-owl", "9owls", "owl_", "../owl", "owl\n", "nüsse"])
def test_a_name_that_python_could_not_import_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be a plugin's name"):
        create_plugin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_overwritten(made: Path) -> None:
    with pytest.raises(FileExistsError):
        create_plugin("night_owl", made.parent)


def test_its_module_can_be_read_in_a_minute() -> None:
    assert len((TEMPLATE / "switchboard_acme.py").read_text().splitlines()) <= 70
