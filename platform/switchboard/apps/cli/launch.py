"""`run`: start everything in the foreground, in order, for `make run`."""

import asyncio
import contextlib
import json
import os
import secrets
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import click
import uvloop

from switchboard.apps.cli.demo import EMAIL, Demo, seed
from switchboard.apps.embedded import DataDirectory, EmbeddedServers, get_server_urls
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server.http_server import stop_on_signals
from switchboard.apps.supervisor import STOP_SECONDS, create_child, supervise
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import PREFIX, Settings, load_settings
from switchboard.migrations import upgrade

READY_SECONDS = 60.0
POLL_SECONDS = 0.05
MAKE_SECONDS = 0.5
DRAIN_SECONDS = 3.0
CORES_OF_OTHERS = 2
MOST_PROCESSES = 4
"""Each takes up to 20 connections of the embedded PostgreSQL, as the worker does."""

NAMED_SETTINGS = ("data_dir", "host", "port", "public_url")
"""Settings by which other commands find this run. The addresses of servers of one's own may contain passwords."""


@click.command()
def run() -> None:
    """Start everything in the foreground: servers, API, media, worker; used by `make run`."""
    settings = load_settings()
    if "log_level" not in settings.model_fields_set:
        # A line for each request would hide the address and the password that the terminal shows.
        settings = settings.model_copy(update={"log_level": "WARNING"})
    logs.configure_logging(settings.log_level)
    uvloop.run(Launch(settings).run())


def count_processes() -> int:
    """Return the number of `serve` processes of `make run` without `SWITCHBOARD_PROCESSES`.

    One for each core but two, which PostgreSQL, Redis, and the worker need; one at least, and four at most.
    """
    return min(max((os.cpu_count() or 1) - CORES_OF_OTHERS, 1), MOST_PROCESSES)


class Launch:
    """One run: servers, migrations, the demo organization, API, and worker, until a signal."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = DataDirectory(settings.data_dir)
        self._database_url, self._redis_url = get_server_urls(settings)

    async def run(self) -> None:
        """Run until a signal. Raises `CrashLoop` if a process cannot be kept running."""
        self._directory.claim()
        stop = stop_on_signals()
        async with AsyncExitStack() as stack:
            own = self._settings
            servers = EmbeddedServers(self._directory, postgres=own.database_url is None, redis=own.redis_url is None)
            await stack.enter_async_context(servers)
            await upgrade(self._database_url)
            async with open_process_runtime(
                self._settings, database_url=self._database_url, redis_url=self._redis_url
            ) as parts:
                demo = await seed(parts)
            drain_seconds = own.drain_seconds if "drain_seconds" in own.model_fields_set else DRAIN_SECONDS
            processes = own.processes if "processes" in own.model_fields_set else count_processes()
            environment = {
                f"{PREFIX}PROCESSES": str(processes),
                f"{PREFIX}DATABASE_URL": self._database_url,
                f"{PREFIX}REDIS_URL": self._redis_url,
                f"{PREFIX}DRAIN_SECONDS": str(drain_seconds),
                f"{PREFIX}LOG_LEVEL": own.log_level,
            }
            stack.callback(self._directory.dev_file.unlink, missing_ok=True)
            tasks = [asyncio.create_task(self._announce(demo)), asyncio.create_task(_heed_make(stop))]
            try:
                # A group has so much time for its own processes.
                serve = create_child("serve", environment, stop_seconds=drain_seconds + 2 * STOP_SECONDS)
                await supervise([serve, create_child("worker", environment)], stop)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _announce(self, demo: Demo) -> None:
        """Write `dev.json` once the server is ready, and print what to do next."""
        async with asyncio.timeout(READY_SECONDS):
            while not await asyncio.to_thread(self._is_ready):  # noqa: ASYNC110 - another process: no event
                await asyncio.sleep(POLL_SECONDS)
        base_url = self._settings.base_url
        facts = {"base_url": base_url, "dashboard_url": f"{base_url}/", **demo.facts(), "pid": os.getpid()}
        fresh = self._directory.dev_file.with_suffix(f".{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(facts))
        fresh.rename(self._directory.dev_file)
        welcome = _WELCOME.format(
            base_url=base_url,
            email=EMAIL,
            password=demo.password,
            number=demo.phone_number,
            program=_get_program(self._settings),
            dev_file=self._directory.dev_file,
        )
        click.echo(welcome, err=True)

    def _is_ready(self) -> bool:
        with contextlib.suppress(URLError, OSError):
            host = "127.0.0.1" if self._settings.host in ("0.0.0.0", "::") else self._settings.host  # noqa: S104
            with urlopen(f"http://{host}:{self._settings.port}/readyz", timeout=2) as response:
                return bool(response.status == 200)
        return False


async def _heed_make(stop: asyncio.Event) -> None:
    """Stop when the parent `make` was sent SIGINT alone: make then waits for us with that signal blocked, and never
    forwards it.
    """
    parent = Path(f"/proc/{os.getppid()}")
    try:
        if (parent / "comm").read_text().strip() != "make":
            return
        while not stop.is_set():
            mask = next(line for line in (parent / "status").read_text().splitlines() if line.startswith("SigBlk"))
            if int(mask.split()[1], 16) & 1 << signal.SIGINT - 1:
                stop.set()
            await asyncio.sleep(MAKE_SECONDS)
    except OSError:
        return


def _get_program(settings: Settings) -> str:
    """Return the words of a shell for this program with these settings, as far as they are named above.

    The welcome is read in one terminal and pasted into another, which lacks the variables of the first.
    """
    named = [name for name in NAMED_SETTINGS if name in settings.model_fields_set]
    variables = [f"{PREFIX}{name.upper()}={shlex.quote(str(getattr(settings, name)))}" for name in named]
    started = Path(sys.argv[0])
    program = [sys.executable, "-m", "switchboard"] if started.name == "__main__.py" else [sys.argv[0]]
    return " ".join([*variables, shlex.join(program)])


_WELCOME = """
Switchboard is ready. Ctrl-C stops everything; your data stays.

  API        {base_url}/v1     reference: {base_url}/docs, key in {dev_file}
  Call it    {program} phone dial --from +15550100001 --to {number} \\
                 --say "What are your opening hours?" --say "Goodbye"
  Check it   {program} doctor
  Dashboard  {base_url}/       {email}, password {password}
"""
