"""baresip as a telephone: Debian's program, told what to do by its module `ctrl_tcp`."""

import asyncio
import json
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.debian_tools import find_tool, run_program
from tests.fixtures.eventually import wait_for_port
from tests.fixtures.free_ports import find_free_port, find_free_ports
from tests.fixtures.recorded_audio import Samples, read_samples

SAMPLE_RATE = 8_000
SETTINGS = """
sip_listen {host}:{port}
audio_player aubridge,heard
audio_source aufile,{folder}/silence.wav
audio_alert aubridge,alert
ausrc_srate 8000
auplay_srate 8000
ausrc_channels 1
auplay_channels 1
rtp_ports {first_port}-{last_port}
module_path /usr/lib/baresip/modules
module g711.so
module g722.so
module opus.so
module aufile.so
module aubridge.so
module sndfile.so
snd_path {folder}
module srtp.so
module_app account.so
module_app menu.so
module_app ctrl_tcp.so
ctrl_tcp_listen 127.0.0.1:{control_port}
"""


@dataclass
class Baresip:
    """A telephone that runs. `events` are the types of what happened, such as CALL_ESTABLISHED."""

    folder: Path
    port: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    events: list[str] = field(default_factory=list)
    _happened: asyncio.Condition = field(default_factory=asyncio.Condition)
    _spoken: int = 0

    async def follow(self) -> None:
        """Note the events, which come as netstrings of JSON."""
        while True:
            length = int((await self.reader.readuntil(b":"))[:-1])
            message = json.loads(await self.reader.readexactly(length))
            await self.reader.readexactly(1)
            if message.get("event"):
                async with self._happened:
                    self.events.append(message["type"])
                    self._happened.notify_all()

    async def wait_for(self, event: str, *, count: int = 1, seconds: float = 30) -> None:
        """Wait until something has happened so many times."""
        async with asyncio.timeout(seconds), self._happened:
            await self._happened.wait_for(lambda: self.events.count(event) >= count)

    async def command(self, name: str, parameters: str = "") -> None:
        """Have baresip carry out one of its commands."""
        body = json.dumps({"command": name, "params": parameters})
        self.writer.write(f"{len(body)}:{body},".encode())
        await self.writer.drain()

    async def say(self, text: str) -> bytes:
        """Speak into the telephone, and return the samples."""
        samples = speak_as_caller(text)
        await self.play(samples)
        return samples

    async def play(self, samples: bytes) -> None:
        """Play 16-bit samples into the telephone, and silence after them."""
        self._spoken += 1
        path = self.folder / f"said-{self._spoken}.wav"
        _write(path, samples + bytes(SAMPLE_RATE * 2 * 60))
        await self.command("ausrc", f"aufile,{path}")

    async def fall_silent(self) -> None:
        """Say nothing in the next call, which would otherwise begin with the last thing that was said."""
        await self.command("ausrc", f"aufile,{self.folder}/silence.wav")

    def read_heard(self) -> Samples:
        """Read what was heard in the only call, once it is over."""
        (path,) = self.folder.glob("*-dec.wav")
        return read_samples(path)


def find_telephone_port() -> int:
    """Find a port for SIP; baresip listens for TLS on the next one."""
    return find_free_ports(2)


@asynccontextmanager
async def run_baresip(
    folder: Path, number: str, *, host: str = "127.0.0.1", port: int | None = None, options: str = "audio_codecs=pcmu"
) -> AsyncIterator[Baresip]:
    """Run baresip at an address, as the telephone of a number. `options` are parameters of its account."""
    program = find_tool("baresip")
    folder.mkdir()
    port = port or find_telephone_port()
    control_port, first_port = find_free_port(), find_free_ports(21)
    (folder / "config").write_text(
        SETTINGS.format(
            host=host,
            port=port,
            folder=folder,
            control_port=control_port,
            first_port=first_port,
            last_port=first_port + 20,
        )
    )
    (folder / "accounts").write_text(f"<sip:{number}@{host}>;regint=0;{options}\n")
    (folder / "contacts").touch()
    _write(folder / "silence.wav", bytes(SAMPLE_RATE * 2 * 120))
    version = "-6" if ":" in host else "-4"
    async with run_program(program, version, "-f", str(folder), log=folder / "baresip.log"):
        await wait_for_port("127.0.0.1", control_port)
        reader, writer = await asyncio.open_connection("127.0.0.1", control_port)
        telephone = Baresip(folder, port, reader, writer)
        following = asyncio.create_task(telephone.follow())
        try:
            yield telephone
        finally:
            following.cancel()
            writer.close()


def _write(path: Path, samples: bytes) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(samples)
