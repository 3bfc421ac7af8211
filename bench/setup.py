"""Processor time of a call's set-up in the serving process: from the carrier's callback to the greeting's first audio.

A real `serve` process takes calls over Twilio's wire format from an organization with vendors' plugins, which ask
stand-ins on this machine (`vendors_server.py`), with recording, transcript, database, and events. Some calls arrive one
after the other, and stay silent. They hang up together, and what follows in this process is measured apart. The time
that the process takes without a call, and for calls that are silent, is measured and taken off.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from uuid import UUID
from xml.etree import ElementTree

import aiohttp
import uvloop
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.files import read_file
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.agents.models import Agent
from switchboard.resources.phone_numbers.models import PhoneNumber

from bench.calls import cpu_seconds
from bench.costs import find_port
from bench.embedded_server import build_serve_environment
from bench.vendors_server import MODEL, Vendors
from tests.carriers.twilio.wire import compute_signature
from tests.fixtures.eventually import eventually

ACCOUNT, TOKEN, NUMBER = f"AC{0:032x}", "token", "+15550100200"
CALLS, ROUNDS, WARM = 20, 5, 5
IDLE_SECONDS, AFTER_SECONDS, GREETING_SECONDS = 3.0, 3.0, 2.0
TENANT = """
name = "Bench"
max_concurrent_calls = 1000
[[telephony]]
provider = "twilio"
account_sid = "{account}"
auth_token = {{ env = "TOKEN" }}
[[speech_to_text]]
provider = "deepgram"
api_key = {{ env = "TOKEN" }}
base_url = "{vendors}"
[[text_to_speech]]
provider = "elevenlabs"
api_key = {{ env = "TOKEN" }}
base_url = "{vendors}"
[[llm]]
provider = "openai_compatible"
api_key = {{ env = "TOKEN" }}
base_url = "{vendors}/v1"
"""


@dataclass(frozen=True, slots=True)
class Carrier:
    """The carrier's side of the calls to one process."""

    pid: int
    base_url: str
    organization_id: UUID
    http: aiohttp.ClientSession

    async def connect(self, number: int) -> aiohttp.ClientWebSocketResponse:
        """Announce a call, open its media socket, and wait for the first audio of the greeting."""
        url = f"{self.base_url}/carriers/twilio/{self.organization_id}/events/call"
        sid = f"CA{number:032x}"
        caller = f"+1555{number:07}"
        form = {"CallSid": sid, "AccountSid": ACCOUNT, "CallStatus": "ringing", "Direction": "inbound"}
        form |= {"From": caller, "Caller": caller, "To": NUMBER, "Called": NUMBER, "ApiVersion": "2010-04-01"}
        headers = {"X-Twilio-Signature": compute_signature(TOKEN, url, form)}
        async with self.http.post(url, data=form, headers=headers) as response:
            markup = await response.text()
            if not response.ok:
                raise RuntimeError(f"{response.status}: {markup}")
        stream = ElementTree.fromstring(markup).find("Connect/Stream")  # noqa: S314 - our own
        if stream is None:
            raise RuntimeError(f"the call is not connected: {markup}")
        socket = await self.http.ws_connect(stream.attrib["url"])
        start = {
            "accountSid": ACCOUNT,
            "streamSid": "MZ0",
            "callSid": sid,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": {item.attrib["name"]: item.attrib["value"] for item in stream.iter("Parameter")},
        }
        await socket.send_json({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        await socket.send_json({"event": "start", "sequenceNumber": "1", "streamSid": "MZ0", "start": start})
        async with asyncio.timeout(30):
            async for message in socket:
                if json.loads(message.data)["event"] == "media":
                    return socket
        raise RuntimeError("the call has ended before its greeting")

    async def hang_up(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        stop = {"event": "stop", "sequenceNumber": "2", "streamSid": "MZ0", "stop": {"accountSid": ACCOUNT}}
        await socket.send_json(stop)
        await socket.close()


async def create_number(settings: Settings, directory: DataDirectory, vendors: str) -> UUID:
    """Create the organization with its agent and its number, and return its id."""
    path = settings.data_dir / "bench.toml"
    path.write_text(TENANT.format(account=ACCOUNT, vendors=vendors))
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with open_process_runtime(settings, **urls) as runtime:
        file = read_file(path, runtime.registry, {"TOKEN": TOKEN})
        if file.faults:
            raise RuntimeError("; ".join(map(str, file.faults)))
        organization_id, _ = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
        async with runtime.database.tenant(organization_id) as session:
            agent = Agent(
                organization_id=organization_id,
                name="Bench",
                greeting_message="We open at seven.",
                llm_provider="openai_compatible",
                llm_model=MODEL,
                tts_provider="elevenlabs",
                tts_voice_id="voice-0",
                stt_provider="deepgram",
                stt_model="nova-3-0",
            )
            session.add(agent)
            await session.flush()
            fields = {"inbound_agent_id": agent.id, "status": "active", "carrier": "twilio"}
            session.add(
                PhoneNumber(organization_id=organization_id, phone_number=NUMBER, friendly_name="Bench", **fields)
            )
    return organization_id


@asynccontextmanager
async def run_carrier(folder: Path) -> AsyncIterator[Carrier]:
    """Run `serve` over embedded servers, with vendors' stand-ins, and return the carrier of its calls."""
    directory = DataDirectory(folder)
    directory.claim()
    settings, vendors_port = Settings(data_dir=folder, port=find_port()), find_port()
    environment = build_serve_environment(directory, settings.port)
    async with EmbeddedServers(directory), Vendors(1).serve(vendors_port), aiohttp.ClientSession() as http:
        await upgrade(directory.database_url)
        organization_id = await create_number(settings, directory, f"http://127.0.0.1:{vendors_port}")
        process = subprocess.Popen(
            [sys.executable, "-m", "switchboard", "serve"],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await eventually(lambda: is_ready(http, settings.base_url), seconds=60)
            yield Carrier(process.pid, settings.base_url, organization_id, http)
        finally:
            process.terminate()
            process.wait()
    directory.release()


async def is_ready(http: aiohttp.ClientSession, base_url: str) -> bool:
    try:
        async with http.get(f"{base_url}/readyz") as response:
            return response.ok
    except aiohttp.ClientError:
        return False


async def measure_share(carrier: Carrier, seconds: float) -> float:
    """Return the share of a core that the process takes."""
    before, moment = cpu_seconds(carrier.pid), time.monotonic()
    await asyncio.sleep(seconds)
    return (cpu_seconds(carrier.pid) - before) / (time.monotonic() - moment)


async def measure_round(
    carrier: Carrier, numbers: Iterator[int], calls: int, idle: float
) -> tuple[float, float, float]:
    """Return a call's milliseconds of processor time until its greeting, from its end, and in a silent second."""
    before, moment, connected_at = cpu_seconds(carrier.pid), time.monotonic(), []
    sockets = []
    for _ in range(calls):
        sockets.append(await carrier.connect(next(numbers)))
        connected_at.append(time.monotonic())
    connected, seconds = cpu_seconds(carrier.pid) - before, time.monotonic() - moment
    await asyncio.sleep(GREETING_SECONDS)
    silent = (await measure_share(carrier, IDLE_SECONDS) - idle) / calls
    # Calls that were connected before this one took their part of the time.
    others = silent * sum(connected_at[-1] - moment for moment in connected_at)
    before, moment = cpu_seconds(carrier.pid), time.monotonic()
    await asyncio.gather(*(carrier.hang_up(socket) for socket in sockets))
    await asyncio.sleep(AFTER_SECONDS)
    ended = cpu_seconds(carrier.pid) - before - idle * (time.monotonic() - moment)
    return (connected - others - idle * seconds) * 1000 / calls, ended * 1000 / calls, silent * 1000


async def measure() -> None:
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        async with run_carrier(Path(folder)) as carrier:
            await measure_round(carrier, numbers, WARM, 0.0)
            idle = await measure_share(carrier, IDLE_SECONDS)
            print(
                f"idle: {idle * 100:.1f} % of a core\nCPU ms of a call: until its greeting | from its end | in a second"
            )
            rounds = []
            for _ in range(ROUNDS):
                rounds.append(await measure_round(carrier, numbers, CALLS, idle))
                setup, end, silent = rounds[-1]
                print(f"{setup:36.1f} | {end:12.1f} | {silent:11.1f}", flush=True)
            setup, end, silent = (median(column) for column in zip(*rounds, strict=True))
            print(f"median {setup:29.1f} | {end:12.1f} | {silent:11.1f}")


def run() -> None:
    """Print the rounds and the medians."""
    uvloop.run(measure())
