"""Plugins are installed, upgraded, checked, and removed by commands, in the environment of the running program."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from switchboard.apps.plugin_packages import find_source, run_contract
from switchboard.plugin_sdk.scaffold import create_plugin

from tests.fixtures.command_line import Operator
from tests.fixtures.environments import create_environment

MODULE = """
from switchboard.plugin_sdk import AgentTool, hookimpl


class Bell(AgentTool):
    name, description = "bell", "Ring a bell."

    async def run(self, context, parameters):
        return {}


@hookimpl
def agent_tools():
    return [Bell]
"""


def write_wheel(folder: Path, version: str, *, requires: str = "", module: str = MODULE) -> Path:
    """Write a wheel of the plugin `bell`, as a build tool does."""
    path = folder / f"bell_plugin-{version}-py3-none-any.whl"
    information = f"bell_plugin-{version}.dist-info"
    needed = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        "bell_plugin.py": module,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: bell-plugin\nVersion: {version}\n{needed}",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": "[switchboard.plugins]\nbell = bell_plugin\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{information}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


class Environment:
    """An environment of its own, which sees the packages of this one."""

    def __init__(self, folder: Path) -> None:
        self._python = create_environment(folder)
        self._variables = {
            **os.environ,
            "PIP_NO_INDEX": "1",
            "SWITCHBOARD_DATA_DIR": str(folder / "data"),
            "SWITCHBOARD_REDIS_URL": "redis://127.0.0.1:9",
        }

    def add_path(self, *folders: Path) -> None:
        """Let the environment see what is installed in folders."""
        self._variables["PYTHONPATH"] = ":".join(map(str, folders))

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment's `switchboard`."""
        command = [str(self._python), "-m", "switchboard", "plugins", *map(str, arguments)]
        return subprocess.run(command, env=self._variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.mark.system
def test_a_plugin_is_installed_upgraded_and_removed(environment: Environment, tmp_path: Path) -> None:
    installed = environment.run("install", write_wheel(tmp_path, "1.0"))
    assert installed.returncode == 0, installed.stderr
    assert installed.stdout.startswith("bell (bell-plugin 1.0)\n  agent_tool bell\n")
    assert "restart all servers and workers" in installed.stdout
    needy = environment.run("upgrade", "bell", "--to", write_wheel(tmp_path, "1.5", requires="click<1"))
    assert needy.returncode == 1
    assert needy.stderr.startswith("switchboard: bell cannot be upgraded: ")
    broken = environment.run("upgrade", "bell", "--to", write_wheel(tmp_path, "2.0", module="import no_such_module"))
    assert broken.returncode == 1
    assert "bell (bell-plugin 2.0)\n  BROKEN: cannot be loaded: ModuleNotFoundError" in broken.stdout
    listed = environment.run("list", "--json")
    assert listed.returncode == 1, "a list with a broken plugin is a failure"
    (bell,) = (plugin for plugin in json.loads(listed.stdout)["plugins"] if plugin["name"] == "bell")
    assert (bell["version"], len(bell["faults"])) == ("2.0", 1)
    assert listed.stderr == ""
    removed = environment.run("uninstall", "bell")
    assert (removed.returncode, removed.stdout.splitlines()[0]) == (0, "bell-plugin was removed")


@pytest.mark.system
def test_a_check_runs_the_contract(environment: Environment, tmp_path: Path) -> None:
    plugin = create_plugin("owl", tmp_path, "watcher")
    (tmp_path / "owl.dist-info").mkdir()
    (tmp_path / "owl.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: owl\nVersion: 1.0\n")
    (tmp_path / "owl.dist-info" / "entry_points.txt").write_text("[switchboard.plugins]\nowl = switchboard_owl\n")
    environment.add_path(tmp_path, plugin)
    checked = environment.run("check", "owl", "--tests", plugin, "--json")
    result = json.loads(checked.stdout)
    assert (checked.returncode, result["contract"]["passed"], result["faults"]) == (0, True, [])
    assert result["quality"]["grade"] == "gold"
    assert {rule["status"] for rule in result["quality"]["rules"]} == {"kept"}
    (plugin / "tests" / "owl_server.py").write_text("raise RuntimeError")
    failed = environment.run("check", "owl", "--tests", plugin)
    assert failed.returncode == 1
    assert "contract: " in failed.stdout
    assert "  grade: none\n  missing for bronze: contract: the tests fail\n" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["plugins", "check", "offline"], 1, "pip install switchboard-voice-plugin-quality\n"),
        (["plugins", "--help"], 0, ""),
        (["--help"], 0, ""),
    ],
)
def test_a_server_without_the_grades_says_what_to_install(arguments: list[str], status: int, said: str) -> None:
    program = (
        "import sys; sys.modules['switchboard_plugin_quality'] = None; from switchboard.apps.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (status, status)
    assert done.stderr.endswith(said)


@pytest.mark.system
def test_the_catalogs_of_a_plugin_are_written_in_its_package(environment: Environment, tmp_path: Path) -> None:
    plugin, information = create_plugin("night_owl", tmp_path), tmp_path / "night_owl.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: night-owl\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[switchboard.plugins]\nnight_owl = switchboard_night_owl\n")
    environment.add_path(tmp_path, plugin)
    refused = environment.run("catalogs", "night_owl")
    assert refused.returncode == 1
    assert "must be a package that is installed in place" in refused.stderr
    origin = {"url": plugin.as_uri(), "dir_info": {"editable": True}}
    (information / "direct_url.json").write_text(json.dumps(origin))
    written = environment.run("catalogs", "night_owl")
    assert written.returncode == 0, written.stderr
    paths = [
        plugin / "switchboard_night_owl" / "translations" / language / "LC_MESSAGES" / "messages.po"
        for language in ("de", "es", "fr")
    ]
    assert written.stdout.splitlines() == [f"{path}: 6 without a translation" for path in paths]
    assert all('msgid "Key of the account at NightOwl."' in path.read_text() for path in paths)


def test_a_plugin_without_its_tests_is_only_loaded() -> None:
    assert run_contract(find_source("no-such-distribution")).passed is None


@pytest.mark.parametrize("command", ["upgrade", "uninstall"])
def test_parts_of_the_platform_change_with_it(operator: Operator, command: str) -> None:
    refused = operator.run("plugins", command, "offline")
    message = "switchboard: offline is a part of Switchboard, and changes with it\n"
    assert (refused.returncode, refused.stderr) == (1, message)
