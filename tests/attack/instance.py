"""An instance for the attacks: `switchboard run` in a new folder, with the defaults of a new installation."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from switchboard.apps.embedded import DataDirectory

from tests.attack.later_server import AHEAD
from tests.attack.scene import LaterServer
from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port

START_SECONDS = 120


@asynccontextmanager
async def run_instance(folder: Path) -> AsyncIterator[tuple[str, Operator]]:
    """Run the platform; yield its address, and the command line beside it."""
    for name in [name for name in os.environ if name.startswith("SWITCHBOARD_")]:
        del os.environ[name]
    tenants = folder / "tenants"
    tenants.mkdir()
    settings = {
        "SWITCHBOARD_DATA_DIR": str(folder / "data"),
        "SWITCHBOARD_PORT": str(find_free_port()),
        "SWITCHBOARD_TENANTS_DIR": str(tenants),
        # The attacks are the proxy too: guesses at passwords come from many addresses.
        "SWITCHBOARD_TRUSTED_PROXIES": "1",
    }
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "switchboard", "run"), env={**os.environ, **settings}, stdout=log, stderr=log
        )
    facts = folder / "data" / "dev.json"
    try:
        await eventually(lambda: asyncio.to_thread(facts.exists), seconds=START_SECONDS)
        yield json.loads(facts.read_text())["base_url"], Operator(**settings)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@asynccontextmanager
async def run_later_server(folder: Path, base_url: str, operator: Operator) -> AsyncIterator[LaterServer]:
    """Run one more server of the instance in a folder, whose clock can be set ahead."""
    clock, directory, port = folder / "clock", DataDirectory(folder / "data"), find_free_port()

    def advance(time: timedelta) -> None:
        # A new file in one step: the server reads it whenever it looks at its clock.
        clock.with_suffix(".new").write_text(str(int(time.total_seconds())))
        clock.with_suffix(".new").rename(clock)

    async def create_password_link(email: str) -> str:
        return (await asyncio.to_thread(operator.ask, "users", "password-link", "--email", email))["link"]

    advance(timedelta())
    settings = {
        "SWITCHBOARD_DATABASE_URL": directory.database_url,
        "SWITCHBOARD_REDIS_URL": directory.redis_url,
        "SWITCHBOARD_PUBLIC_URL": base_url,
        "SWITCHBOARD_PORT": str(port),
        AHEAD: str(clock),
    }
    with (folder / "later-log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.attack.later_server"),
            env={**operator.environment, **settings},
            stdout=log,
            stderr=log,
        )
    try:
        await wait_for_port("127.0.0.1", port)
        yield LaterServer(f"http://127.0.0.1:{port}", advance, create_password_link)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
