"""An installation with vendors' plugins, whose calls come over Twilio's wire format: for `bench/calls`, `bench/setup`,
`bench/soak`, and `bench/writes`.

Its processes run over embedded servers, with recording, transcript, database, and events. The plugins ask stand-ins on
this machine (`vendors_server.py`). Every number has an agent of its own, by which the stand-ins know its calls.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final
from uuid import UUID
from xml.etree import ElementTree

import aiohttp
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.files import read_file
from switchboard.engine.conversation.agent_settings import AgentSettings, TurnDetection
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.agents.models import Agent
from switchboard.resources.phone_numbers.models import PhoneNumber

from bench.costs import find_port
from bench.embedded_server import build_serve_environment
from bench.vendors_server import MODEL
from tests.carriers.twilio.wire import compute_signature

ACCOUNT, TOKEN = f"AC{0:032x}", "token"
START_SECONDS, STOP_SECONDS, GREETING_SECONDS = 60, 20, 30
LAST_LINES: Final = 10
TENANT: Final = """
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
    """The carrier's side of the calls to one `serve` process (`Line`)."""

    pid: int
    base_url: str
    organization_id: UUID
    http: aiohttp.ClientSession
    sids: Iterator[int]

    async def open(self, number: int) -> aiohttp.ClientWebSocketResponse:
        """Announce a call to a number, and open its media socket. Raises `RuntimeError` if the call is refused."""
        url = f"{self.base_url}/carriers/twilio/{self.organization_id}/events/call"
        sid = f"CA{next(self.sids):032x}"
        caller, called = f"+1555{number:07}", build_number(number)
        form = {"CallSid": sid, "AccountSid": ACCOUNT, "CallStatus": "ringing", "Direction": "inbound"}
        form |= {"From": caller, "Caller": caller, "To": called, "Called": called, "ApiVersion": "2010-04-01"}
        headers = {"X-Twilio-Signature": compute_signature(TOKEN, url, form)}
        async with self.http.post(url, data=form, headers=headers) as response:
            markup = await response.text()
            if not response.ok:
                raise RuntimeError(f"{response.status}: {markup}")
        stream = ElementTree.fromstring(markup).find("Connect/Stream")  # noqa: S314 - our own
        if stream is None:
            raise RuntimeError(f"the call is not connected: {markup}")
        socket = await self.http.ws_connect(stream.attrib["url"])
        start = build_start(sid, {item.attrib["name"]: item.attrib["value"] for item in stream.iter("Parameter")})
        await socket.send_json({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        await socket.send_json({"event": "start", "sequenceNumber": "1", "streamSid": "MZ0", "start": start})
        return socket

    async def connect(self, number: int) -> aiohttp.ClientWebSocketResponse:
        """Open a call, and wait for the first audio of its greeting."""
        socket = await self.open(number)
        async with asyncio.timeout(GREETING_SECONDS):
            async for message in socket:
                if json.loads(message.data)["event"] == "media":
                    return socket
        raise RuntimeError("the call has ended before its greeting")

    async def hang_up(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        stop = {"event": "stop", "sequenceNumber": "2", "streamSid": "MZ0", "stop": {"accountSid": ACCOUNT}}
        await socket.send_json(stop)
        await socket.close()


def build_number(number: int) -> str:
    return f"+15550{200_000 + number}"


def build_start(sid: str, parameters: Mapping[str, str]) -> dict[str, object]:
    """Build the facts of a stream, as Twilio's `start` has them."""
    return {
        "accountSid": ACCOUNT,
        "streamSid": "MZ0",
        "callSid": sid,
        "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        "customParameters": dict(parameters),
    }


@dataclass(frozen=True, slots=True)
class Installation:
    """Embedded servers, and an organization whose numbers have agents. The vendors are to be on `vendors_port`."""

    directory: DataDirectory
    organization_id: UUID
    vendors_port: int
    sids: Iterator[int] = field(default_factory=count)

    @asynccontextmanager
    async def serve(self, *, core: int | None = None) -> AsyncIterator[Carrier]:
        """Run a `serve` process, on one core if it is given, and return the carrier of its calls."""
        base_url = Settings(data_dir=self.directory.path, port=(port := find_port())).base_url
        environment = build_serve_environment(self.directory, port) | {
            "SWITCHBOARD_LOG_LEVEL": "WARNING",
            # A quarter of it is admitted however late the answers are, which this measures.
            "SWITCHBOARD_CALL_CAPACITY": "4000",
        }
        command, log = [sys.executable, "-m", "switchboard", "serve"], self.directory.path / "serve.log"
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
            run_server(command, log, f"{base_url}/readyz", core=core, environment=environment) as pid,
        ):
            yield Carrier(pid, base_url, self.organization_id, http, self.sids)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[int]:
        """Run a `worker` process, and return its id."""
        environment = build_serve_environment(self.directory, find_port()) | {
            "SWITCHBOARD_LOG_LEVEL": "WARNING",
            "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "SWITCHBOARD_WORKER_PORT": str(port := find_port()),
        }
        command, log = [sys.executable, "-m", "switchboard", "worker"], self.directory.path / "worker.log"
        async with run_server(command, log, f"http://127.0.0.1:{port}/healthz", environment=environment) as pid:
            yield pid


@asynccontextmanager
async def open_installation(folder: Path, numbers: int) -> AsyncIterator[Installation]:
    """Run embedded servers with an organization of so many numbers."""
    directory, vendors_port = DataDirectory(folder), find_port()
    directory.claim()
    async with EmbeddedServers(directory):
        await upgrade(directory.database_url)
        organization_id = await create_numbers(directory, f"http://127.0.0.1:{vendors_port}", numbers)
        yield Installation(directory, organization_id, vendors_port)
    directory.release()


async def create_numbers(directory: DataDirectory, vendors: str, numbers: int) -> UUID:
    """Create the organization with its agents and their numbers, and return its id."""
    path = directory.path / "bench.toml"
    path.write_text(TENANT.format(account=ACCOUNT, vendors=vendors))
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with open_process_runtime(Settings(data_dir=directory.path), **urls) as runtime:
        file = read_file(path, runtime.registry, {"TOKEN": TOKEN})
        if file.faults:
            raise RuntimeError("; ".join(map(str, file.faults)))
        organization_id, _ = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
        async with runtime.database.write(organization_id) as session:
            agents = [build_agent(organization_id, number) for number in range(numbers)]
            session.add_all(agents)
            await session.flush()
            session.add_all(
                PhoneNumber(
                    organization_id=organization_id,
                    phone_number=build_number(number),
                    friendly_name="Bench",
                    inbound_agent_id=agent.id,
                    status="active",
                    carrier="twilio",
                )
                for number, agent in enumerate(agents)
            )
    return organization_id


def build_agent(organization_id: UUID, number: int) -> Agent:
    return Agent(
        organization_id=organization_id,
        name=f"Bench {number}",
        settings=AgentSettings(
            system_prompt=f"Be brief on call-{number}",
            greeting_message="We open at seven.",
            interruption_min_words=10,
            turn_detection=TurnDetection(mode="silence"),
            end_call_silence_seconds=600,
            llm_provider="openai_compatible",
            llm_model=MODEL,
            tts_provider="elevenlabs",
            tts_voice_id=f"voice-{number}",
            stt_provider="deepgram",
            stt_model=f"nova-3-{number}",
        ),
    )


@asynccontextmanager
async def run_server(
    command: list[str], log: Path, url: str, *, core: int | None = None, environment: Mapping[str, str] | None = None
) -> AsyncIterator[int]:
    """Run a server, on one core if it is given, and return its process id once it answers at `url`.

    Raises `RuntimeError` with the end of its log if it does not.
    """
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    with log.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            *pinned, *command, env={**os.environ, **(environment or {})}, stdout=output, stderr=output
        )
    try:
        await wait_until_ready(process, url, log)
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def wait_until_ready(process: asyncio.subprocess.Process, url: str, log: Path) -> None:
    async with aiohttp.ClientSession() as http:
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await is_ready(http, url):
                    if process.returncode is not None:
                        raise RuntimeError(f"the server has ended: {read_end(log)}")
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise RuntimeError(f"the server is not ready after {START_SECONDS} s: {read_end(log)}") from None


def read_end(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-LAST_LINES:])


async def is_ready(http: aiohttp.ClientSession, url: str) -> bool:
    """Return whether a server answers; Pipecat's answers 404 on every address."""
    try:
        async with http.get(url) as response:
            return response.status < 500
    except aiohttp.ClientError:
        return False
