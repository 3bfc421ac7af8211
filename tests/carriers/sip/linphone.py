"""Linphone's console telephone, which plays and records files instead of a sound card."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fixtures.debian_tools import find_tool
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port, find_free_ports

SETTINGS = """
[sip]
sip_port={port}
sip_tcp_port=0
[rtp]
audio_rtp_port={rtp_port}
[net]
mtu=1300
"""


@dataclass(frozen=True, slots=True)
class Linphone:
    """A telephone that runs, and takes the lines of its console."""

    process: asyncio.subprocess.Process
    log: Path

    async def wait_until(self, text: str) -> None:
        """Wait until the console has reported something."""

        async def look() -> bool:
            return text in self.log.read_text(errors="replace")

        await eventually(look, bool)

    async def command(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()


@asynccontextmanager
async def run_linphone(folder: Path, *, said: Path, heard: Path, port: int | None = None) -> AsyncIterator[Linphone]:
    """Run linphonec with WAV files: what it says in each call, and where it writes what it hears."""
    program = find_tool("linphonec", package="linphone-cli")
    (folder / ".local/share/linphone").mkdir(parents=True)
    settings, log = folder / "linphonerc", folder / "linphone.log"
    settings.write_text(SETTINGS.format(port=port or find_free_port(), rtp_port=find_free_ports(10)))
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(program, "-c", str(settings)),
            env={**os.environ, "HOME": str(folder)},
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
    telephone = Linphone(process, log)
    try:
        for line in ("ipv6 disable", "soundcard use files", f"play {said}", f"record {heard}"):
            await telephone.command(line)
        yield telephone
    finally:
        await telephone.command("quit")
        await process.wait()
