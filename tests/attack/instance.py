"""An instance for the attacks: `switchboard run` in a new folder, with the defaults of a new installation."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
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
