"""Destroy PostgreSQL, and restore it to a moment, as docs/how-to/point-in-time-recovery.md says."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from switchboard.apps.embedded import DataDirectory, EmbeddedServers, launch, servers
from switchboard.apps.server import app

from tests.fixtures.app import Caller, LivePlatform, fresh_number, run_server
from tests.fixtures.debian_tools import find_postgres, find_tool
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at
from tests.fixtures.processes import start_live_platform, start_platform
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.table_rows import digest_tables, wait_until_idle

PAGE = (REPOSITORY / "docs/how-to/point-in-time-recovery.md").read_text()


@dataclass(frozen=True, slots=True)
class PgBackRest:
    """pgBackRest with the configuration of the page, for the server of a data directory."""

    path: str
    config: Path

    @classmethod
    def create(cls, folder: Path, server: DataDirectory) -> "PgBackRest":
        """Write the configuration with the paths of the test."""
        repository, config = folder / "repository", folder / "pgbackrest.conf"
        repository.mkdir()
        (block,) = re.findall(r"```ini\n(\[global\].+?)```", PAGE, re.DOTALL)
        text = re.sub(r"repo1-path=.*", f"repo1-path={repository}", block)
        text = re.sub(r"pg1-path=.*", f"pg1-path={server.path / 'postgres'}", text)
        login = f"pg1-socket-path={server.sockets}\npg1-user=switchboard\n"
        own = f"[global]\nlog-path={folder}\nlock-path={folder}\nspool-path={folder}\n"
        config.write_text(f"{text}{login}{own}")
        return cls(find_tool("pgbackrest"), config)

    def list_server_settings(self) -> dict[str, str]:
        """Return the settings of PostgreSQL."""
        (block,) = re.findall(r"```ini\n(archive_mode.+?)```", PAGE, re.DOTALL)
        settings = dict(re.findall(r"^(\w+) = '?(.+?)'?$", block, re.MULTILINE))
        command = settings["archive_command"].replace("pgbackrest ", f"{self.path} --config={self.config} ")
        return {**settings, "archive_command": command, "wal_level": "replica", "max_wal_senders": "4"}

    async def run(self, verb: str, **replaced: str) -> None:
        """Run the command of the page that has this verb, with some options replaced."""
        (line,) = re.findall(rf"runuser -u postgres -- pgbackrest (.* {verb}|{verb})$", PAGE, re.MULTILINE)
        arguments = shlex.split(line)
        for option, value in replaced.items():
            arguments = [f"--{option}={value}" if part.startswith(f"--{option}=") else part for part in arguments]
        # As the user of PostgreSQL, whom its files belong to.
        as_postgres = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(signal.SIGKILL.value)]
        process = await asyncio.create_subprocess_exec(
            *as_postgres, self.path, f"--config={self.config}", *arguments,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()


async def ask(server: DataDirectory, query: str) -> object:
    """Return the value of a query."""
    connection = await asyncpg.connect(host=str(server.sockets), user="switchboard", database="switchboard")
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def create_contact(caller: Caller) -> None:
    response = await caller.post("/v1/contacts", {"phone_number": fresh_number(), "name": "Ada"})
    assert response.status == 201, response.body


async def archive_log(server: DataDirectory) -> None:
    """Finish the current segment of the log, and wait until the archive has it."""
    segment = await ask(server, "select pg_walfile_name(pg_switch_wal())")

    async def is_archived() -> bool:
        return str(await ask(server, "select last_archived_wal from pg_stat_archiver")) >= str(segment)

    await eventually(is_archived)


async def digest_settled_tables(database_url: str) -> dict[str, object]:
    """Digest the tables that change with work only: a process renews its lease every few seconds."""
    return {name: digest for name, digest in (await digest_tables(database_url)).items() if name != "process_lease"}


@pytest.mark.system
async def test_a_destroyed_server_is_restored_to_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, recordings = tmp_path / "data", tmp_path / "recordings"
    directory = DataDirectory(folder)
    monkeypatch.setattr(servers, "_postgres_binaries", find_postgres)
    backups = PgBackRest.create(tmp_path, directory)
    for name, value in backups.list_server_settings().items():
        monkeypatch.setitem(servers.SETTINGS, name, value)

    async with start_live_platform(folder) as (live, _):
        for command in ("stanza-create", "check", "backup"):
            await backups.run(command)
        # All of this comes after the backup and is in the log only.
        await live.simulate_call("goodbye")
        call_id = at((await live.caller.get("/v1/calls")).json, "items", 0, "id")
        await live.wait_for_end(call_id, analyzed=True)
        recording = (await live.caller.get(f"/v1/calls/{call_id}/recording")).body
        await create_contact(live.caller)
        contacts = (await live.caller.get("/v1/contacts")).json
        await wait_until_idle(directory.database_url)
        expected = await digest_settled_tables(directory.database_url)
        moment = await ask(directory, "select now()::text")
        await create_contact(live.caller)
        await archive_log(directory)
    shutil.copytree(folder / "recordings", recordings)

    shutil.rmtree(folder)
    (folder / "postgres").mkdir(mode=0o700, parents=True)
    await backups.run("restore", target=str(moment))
    directory.claim()
    async with EmbeddedServers(directory, redis=False):
        await eventually(lambda: ask(directory, "select not pg_is_in_recovery()"))
        assert await digest_settled_tables(directory.database_url) == expected
    directory.release()

    shutil.copytree(recordings, folder / "recordings", dirs_exist_ok=True)
    async with start_platform(folder) as (runtime, _, _), run_server(runtime, worker=False):
        client = app.create_app(runtime).test_client()
        caller = Caller(live.caller.organization_id, live.caller.key_id, live.caller.key, client)
        restored = LivePlatform(runtime, caller, live.agent_id, live.number_id, live.number)
        assert (await caller.get(f"/v1/calls/{call_id}/recording")).body == recording
        assert (await caller.get("/v1/contacts")).json == contacts
        settled = await restored.place_call(fresh_number())
        assert (await restored.wait_for_end(settled["id"]))["status"] == "completed"
