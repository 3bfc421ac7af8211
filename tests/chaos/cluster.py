"""Two servers and two workers behind haproxy, as processes that can be restarted, killed, and given a wrong clock."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.fixtures.debian_tools import find_tool, run_program
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.processes import Servers

DRAIN_SECONDS = 120
START_SECONDS = 60.0
HAPROXY = """
global
  maxconn 4000
  log stdout format timed daemon notice
defaults
  mode http
  log global
  timeout connect 2s
  timeout client 2h
  timeout server 2h
  timeout tunnel 4h
  timeout check 5s
  option redispatch
  http-reuse never
frontend public
  bind 127.0.0.1:{port}
  monitor-uri /both-ready
  monitor fail if {{ nbsrv(servers) lt 2 }}
  default_backend servers
backend servers
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  default-server check inter 300ms fall 1 rise 1
  server one 127.0.0.1:{one}
  server two 127.0.0.1:{two}
"""


@dataclass(slots=True)
class Member:
    """A process of the platform: its role, the port of its health endpoints, and its log."""

    role: str
    port: int
    log: Path
    environment: dict[str, str]
    process: asyncio.subprocess.Process | None = None
    statuses: list[int] = field(default_factory=list)
    """Exit statuses of its former processes."""
    is_preloaded: bool = False
    """Whether a library was put into the process: libfaketime makes it crash once in hours."""

    async def start(self, **changes: str) -> None:
        """Start the process, with changes of its environment, and wait until it is ready."""
        self.is_preloaded = "LD_PRELOAD" in changes
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "switchboard", self.role, env={**self.environment, **changes}, stderr=log
            )
        await wait_for_port("127.0.0.1", self.port, seconds=START_SECONDS)
        await wait_for_success(f"http://127.0.0.1:{self.port}/readyz")

    async def stop(self, number: signal.Signals) -> None:
        """Send a signal, and wait for the end. Raises `AssertionError` if the process had ended by itself."""
        process = self.process
        assert process is not None
        has_crashed = process.returncode is not None
        if not has_crashed:
            process.send_signal(number)
        self.statuses.append(await process.wait())
        self.process = None
        assert self.is_preloaded or not has_crashed, (self.role, process.returncode)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The platform of one test behind `url`."""

    url: str
    servers: Servers
    members: list[Member]
    environment: dict[str, str]

    @property
    def serving(self) -> list[Member]:
        return [member for member in self.members if member.role == "serve"]

    async def restart(self, member: Member) -> None:
        """Stop a process as a deployment does, start it again, and wait until the balancer uses both servers."""
        await member.stop(signal.SIGTERM)
        await member.start()
        await self.wait_until_ready()

    async def wait_until_ready(self) -> None:
        """Wait until the balancer uses both servers."""
        await wait_for_success(f"{self.url}/both-ready")

    def read_logs(self) -> str:
        return "".join(member.log.read_text() for member in self.members)


@asynccontextmanager
async def run_cluster(folder: Path, *, servers: Servers | None = None, **changes: str) -> AsyncIterator[Cluster]:
    """Run the platform, with changes of its settings."""
    servers = servers or Servers(folder)
    await servers.start()
    port = find_free_port()
    environment = {
        "SWITCHBOARD_DATA_DIR": str(folder),
        "SWITCHBOARD_REDIS_URL": servers.directory.redis_url,
        "SWITCHBOARD_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "SWITCHBOARD_WEBHOOK_RETRY_DELAYS": "1,1,1,1,1",
        "SWITCHBOARD_DRAIN_SECONDS": str(DRAIN_SECONDS),
        **changes,
    }
    members = [
        _create_member(role, number, folder, servers, environment) for role in ("serve", "worker") for number in (1, 2)
    ]
    cluster = Cluster(environment["SWITCHBOARD_PUBLIC_URL"], servers, members, environment)
    settings = folder / "haproxy.cfg"
    settings.write_text(HAPROXY.format(port=port, one=members[0].port, two=members[1].port))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.stop)
        stack.push_async_callback(_kill_all, members)
        # First, because the members need seconds, in which another program could take its port.
        haproxy = run_program(find_tool("haproxy"), "-f", str(settings), log=folder / "haproxy.log")
        await stack.enter_async_context(haproxy)
        await asyncio.gather(*(member.start() for member in members))
        await cluster.wait_until_ready()
        yield cluster


def _create_member(role: str, number: int, folder: Path, servers: Servers, environment: Mapping[str, str]) -> Member:
    port = find_free_port()
    variable = "SWITCHBOARD_PORT" if role == "serve" else "SWITCHBOARD_WORKER_PORT"
    own = {**os.environ, **environment, "SWITCHBOARD_DATABASE_URL": servers.choose_url(number), variable: str(port)}
    return Member(role, port, folder / f"{role}-{number}.log", own)


async def _kill_all(members: list[Member]) -> None:
    stopping = (member.stop(signal.SIGKILL) for member in members if member.process is not None)
    for fault in await asyncio.gather(*stopping, return_exceptions=True):
        if fault is not None:
            raise fault


async def wait_for_success(url: str) -> None:
    """Wait until a request succeeds."""

    async def succeeds() -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    await eventually(succeeds, seconds=START_SECONDS)
