"""Pipecat beside Switchboard, in an environment of its own under `.bench/`, which the first run creates."""

import json
import subprocess
import tempfile
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
from switchboard.plugin_sdk.audio import Samples

from bench._carrier import build_start, run_server
from bench.costs import find_port

PIPECAT: Final = ("pipecat-ai[websocket,deepgram]==1.14.0", "uvicorn==0.54.0", "uvloop==0.23.0")
PIPECAT_HOME: Final = Path(".bench/pipecat")


@dataclass(frozen=True, slots=True)
class PipecatLine:
    """Pipecat's server, which takes every call."""

    pid: int
    port: int
    http: aiohttp.ClientSession

    async def open(self, number: int) -> aiohttp.ClientWebSocketResponse:
        socket = await self.http.ws_connect(f"ws://127.0.0.1:{self.port}/media/{number}")
        await socket.send_json({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        await socket.send_json({"event": "start", "streamSid": "s", "start": build_start("c", {"token": "token"})})
        return socket


def install_pipecat() -> Path:
    """Return the Python interpreter with Pipecat, installed if needed. Raises `CalledProcessError` if that fails."""
    python = PIPECAT_HOME / "bin" / "python"
    ready = PIPECAT_HOME / "installed"
    if not ready.exists():
        venv.create(PIPECAT_HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PIPECAT], check=True)
        ready.touch()
    return python


def find_pipecat_turn_ends(python: Path, samples: Samples) -> list[int]:
    """Return the frames that end a turn for Pipecat."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(samples.astype("<i2").tobytes())
        file.flush()
        process = subprocess.run(
            [python, "bench/pipecat_server.py", "ends", file.name], check=True, stdout=subprocess.PIPE, text=True
        )
    ends: list[int] = json.loads(process.stdout)
    return ends


@asynccontextmanager
async def run_pipecat(python: Path, folder: Path, core: int, vendors: str) -> AsyncIterator[PipecatLine]:
    """Run Pipecat's server on one core."""
    port = find_port()
    command = [str(python), "bench/pipecat_server.py", str(port), vendors]
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
        run_server(command, folder / "pipecat.log", f"http://127.0.0.1:{port}/", core=core) as pid,
    ):
        yield PipecatLine(pid, port, http)
