"""Plugins and tenant files against processes that run: what a process has not loaded is said where it is looked for."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from switchboard.apps.embedded import DataDirectory

from tests.fixtures.command_line import Operator, start_command
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.servers import SECRET_KEY

PLUGIN = '''"""A voice of an account."""

from switchboard.plugin_sdk import ProviderError, ProviderSettings, SpeechChunk, TextToSpeechProvider, Voice, hookimpl


class Acme(TextToSpeechProvider):
    name = "acme"
    title = "Acme"

    class Settings(ProviderSettings):
        account: str

    async def check(self):
        if self.settings.account == "closed":
            raise ProviderError("the account is closed", retryable=False)
        if self.settings.account == "odd":
            raise KeyError("odd")

    async def synthesize(self, request):
        yield SpeechChunk(bytes(320))

    async def list_voices(self):
        return [Voice("acme", "Acme", "en-US")]


@hookimpl
def text_to_speech_providers():
    return [Acme]
'''
FILE = """name = "{name}"

[[llm]]
provider = "scripted"

[[speech_to_text]]
provider = "pocketsphinx"

[[text_to_speech]]
provider = "espeak"
"""
VOICE = """
[[text_to_speech]]
provider = "acme"
account = "{account}"
"""


def install_plugin(site: Path, version: str) -> None:
    """Install the plugin as pip does, into a folder."""
    site.mkdir(exist_ok=True)
    (site / "acme_voice.py").write_text(PLUGIN)
    information = site / "acme_voice.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-voice\nVersion: {version}\n")
    (information / "entry_points.txt").write_text("[switchboard.plugins]\nacme = acme_voice\n")


BOTH_SERVE = 'switchboard_pool_size{pool="database"} 40.0'


async def read_metrics(port: int) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as response:
        return await response.text()


class Installation:
    """Commands and processes that see what is installed in `site`."""

    def __init__(self, operator: Operator, site: Path) -> None:
        self.operator = Operator(**{**operator.environment, "PYTHONPATH": str(site)})
        self.site = site

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run a command; return its exit status and its JSON."""
        done = self.operator.run(*arguments, "--json")
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def list_restarts(self) -> list[str]:
        restarts: list[str] = self.run("plugins", "list")[1]["restarts"]
        return restarts

    @asynccontextmanager
    async def run_group(self) -> AsyncIterator[None]:
        """Run two processes of `serve` on one port."""
        port = find_free_port()
        environment = {**self.operator.environment, "SWITCHBOARD_PORT": str(port)}
        group = await asyncio.to_thread(start_command, ["serve", "--processes", "2"], environment)
        try:
            await wait_for_port("127.0.0.1", port)
            await eventually(lambda: read_metrics(port), lambda text: BOTH_SERVE in text)
            yield
        finally:
            group.terminate()
            await asyncio.to_thread(group.join, 60)

    @asynccontextmanager
    async def run_worker(self) -> AsyncIterator[int]:
        """Run a worker, and yield its process id once it has loaded its plugins."""
        port = find_free_port()
        environment = {**self.operator.environment, "SWITCHBOARD_WORKER_PORT": str(port)}
        worker = await asyncio.to_thread(start_command, ["worker"], environment)
        try:
            await wait_for_port("127.0.0.1", port)
            assert worker.pid is not None
            yield worker.pid
        finally:
            worker.terminate()
            await asyncio.to_thread(worker.join, 30)


@pytest.fixture
async def installation(servers: DataDirectory, migrated_database: str, tmp_path: Path) -> Installation:
    """An installation with a database and a Redis of its own."""
    (tmp_path / "tenants").mkdir()
    operator = Operator(
        SWITCHBOARD_DATA_DIR=str(tmp_path / "data"),
        SWITCHBOARD_TENANTS_DIR=str(tmp_path / "tenants"),
        SWITCHBOARD_DATABASE_URL=migrated_database,
        SWITCHBOARD_REDIS_URL=f"{servers.redis_url}?db=7",
        SWITCHBOARD_SECRET_KEYS=SECRET_KEY,
    )
    return Installation(operator, tmp_path / "site")


@pytest.mark.system
async def test_processes_that_have_not_loaded_what_is_installed_are_named(
    installation: Installation, tmp_path: Path
) -> None:
    async def find_restarts(count: int) -> list[str]:
        return await eventually(
            lambda: asyncio.to_thread(installation.list_restarts), lambda found: len(found) == count, seconds=60
        )

    async with installation.run_worker() as old:
        install_plugin(installation.site, "1.1")
        (restart,) = await find_restarts(1)
        assert f"(process {old}) has not loaded acme-voice 1.1" in restart
        async with installation.run_worker() as new:
            install_plugin(installation.site, "1.2")
            restarts = await find_restarts(2)
            assert any(f"(process {new}) has loaded acme-voice 1.1, not acme-voice 1.2" in line for line in restarts)
        (restart,) = await find_restarts(1)
        assert f"(process {old})" in restart, "a process that has stopped is not named"
        status, diagnosis = installation.run("doctor")
        assert status == 1
        assert restart.replace("1.1", "1.2") in [finding["advice"] for finding in diagnosis["findings"]]
        file = tmp_path / "acme.toml"
        file.write_text(FILE.format(name="Acme") + VOICE.format(account="open"))
        status, applied = installation.run("tenants", "apply", str(file))
        assert (status, applied["restarts"], applied["refused"]) == (0, [restart], [])
        assert "add text_to_speech acme" in applied["tenants"]["acme"]


@pytest.mark.system
async def test_each_process_of_a_group_is_named(installation: Installation) -> None:
    async with installation.run_group():
        install_plugin(installation.site, "1.1")
        restarts = await eventually(
            lambda: asyncio.to_thread(installation.list_restarts), lambda found: len(found) == 2, seconds=120
        )
        assert len({line.partition("(process ")[2].partition(")")[0] for line in restarts}) == 2, restarts
        assert all("restart needed: serve on" in line for line in restarts)


def test_a_broken_plugin_does_not_litter_the_output_of_commands(installation: Installation) -> None:
    install_plugin(installation.site, "1.0")
    (installation.site / "acme_voice.py").write_text("import no_such_module\n")
    done = installation.operator.run("orgs", "create", "--name", "Bakery")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.system
def test_a_check_asks_each_vendor(installation: Installation, tmp_path: Path) -> None:
    install_plugin(installation.site, "1.0")
    for name in ("open", "closed", "odd"):
        (tmp_path / "tenants" / f"{name}.toml").write_text(FILE.format(name=name) + VOICE.format(account=name))
    status, result = installation.run("tenants", "check")
    faults = {Path(fault["file"]).stem: (fault["line"], fault["key"], fault["message"]) for fault in result["faults"]}
    assert (status, faults) == (
        1,
        {
            "closed": (12, "text_to_speech.1", "the account is closed"),
            "odd": (12, "text_to_speech.1", "Acme failed: KeyError in check of acme-voice 1.0"),
        },
    )
    assert installation.run("tenants", "check", str(tmp_path / "tenants" / "open.toml"))[0] == 0


def test_a_broken_file_does_not_keep_the_others_from_being_applied(installation: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    (folder / "a.toml").write_text("name = 5\n")
    (folder / "b.toml").write_text(FILE.format(name="B"))
    (folder / "c.toml").write_text(FILE.format(name="C"))
    status, result = installation.run("tenants", "diff")
    assert (status, sorted(result["tenants"])) == (1, ["b", "c"])
    status, result = installation.run("tenants", "apply", str(folder / "c.toml"))
    assert (status, list(result["tenants"]), result["refused"]) == (0, ["c"], [])
    status, result = installation.run("tenants", "apply")
    assert (status, result["tenants"]["c"]) == (1, [])
    assert "create organization B" in result["tenants"]["b"]
    assert len(result["refused"]) == 1
    assert "a.toml:1: name" in result["refused"][0]
