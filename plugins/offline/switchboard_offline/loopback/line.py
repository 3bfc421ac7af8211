"""Far ends of a person's line: the platform's media socket, another person, or an announcement."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import aiohttp
from switchboard.plugin_sdk import ACCEPT_KEY, ACCEPT_SECONDS
from switchboard.plugin_sdk.json_media import Dtmf, DtmfDigit, Mark, MarkName, MediaMessageWriter, Stop

from switchboard_offline.loopback.codec import (
    LoopbackClear,
    LoopbackMedia,
    LoopbackStart,
    LoopbackStream,
    read_command,
    write_message,
)
from switchboard_offline.loopback.phone import FRAME_BYTES, FRAME_SECONDS, SILENT_FRAME, Phone, split_frames

WRITER: Final = MediaMessageWriter()
CABLE_FRAMES: Final = 10
"""Frames by which the clocks of two phones may drift apart."""


class FarEnd(Protocol):
    """The other end of a line."""

    async def run(self) -> None:
        """Run until this end hangs up."""

    async def exchange(self, frame: bytes) -> bytes:
        """Take 20 ms of the person's audio and return 20 ms to be heard."""

    async def press(self, digit: str) -> None:
        """Handle a key that the person pressed."""

    async def close(self) -> None:
        """Close the line."""


class MediaStream:
    """The platform's end: plays its audio in real time, and returns marks when they are reached."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, call_id: str, stream_id: str) -> None:
        self._socket = socket
        self._start = LoopbackStream(call_id, stream_id)
        self._buffer = bytearray()
        self._played = 0
        self._marks: deque[tuple[int, str]] = deque()
        self.fault: str | None = None

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                self.fault = "the platform sent something other than a text frame"
                return
            try:
                command = read_command(message.data)
            except ValueError as error:
                self.fault = f"the platform sent an unknown message: {error}"
                return
            await self._execute(command)

    async def start(self) -> None:
        """Send the start message, before anything else."""
        await self._send(write_message(LoopbackStart(self._start)))

    async def _execute(self, command: LoopbackMedia | Mark | LoopbackClear) -> None:
        match command:
            case LoopbackMedia(audio):
                self._buffer += audio.payload
            case Mark(mark):
                self._marks.append((self._played + len(self._buffer), mark.name))
                await self._return_marks()
            case LoopbackClear():
                self._played += len(self._buffer)
                self._buffer.clear()
                await self._return_marks()

    async def exchange(self, frame: bytes) -> bytes:
        await self._send(WRITER.write_media(frame))
        heard = bytes(self._buffer[:FRAME_BYTES])
        del self._buffer[:FRAME_BYTES]
        self._played += len(heard)
        await self._return_marks()
        return heard.ljust(FRAME_BYTES, b"\xff")

    async def press(self, digit: str) -> None:
        await self._send(write_message(Dtmf(DtmfDigit(digit))))

    async def close(self) -> None:
        if not self._socket.closed:
            await self._send(write_message(Stop()))
            await self._socket.close()

    async def _return_marks(self) -> None:
        while self._marks and self._marks[0][0] <= self._played:
            await self._send(write_message(Mark(MarkName(self._marks.popleft()[1]))))

    async def _send(self, message: str) -> None:
        """Send a message. It is dropped if the platform is gone, because `run` then ends the line."""
        if not self._socket.closed:
            try:
                await self._socket.send_str(message)
            except ConnectionError:
                return


class OtherPerson:
    """The end of another person."""

    def __init__(self, person: Callable[[Phone], Awaitable[None]]) -> None:
        self.phone = Phone()
        self._person = person

    async def run(self) -> None:
        await self._person(self.phone)

    async def exchange(self, frame: bytes) -> bytes:
        said = self.phone.speak()
        self.phone.hear(said, frame)
        return said

    async def press(self, digit: str) -> None:
        """Do nothing: people do not react to keys."""

    async def close(self) -> None:
        """Do nothing."""


class Announcement:
    """Speaks once and waits for the key that accepts; without it, hangs up after `ACCEPT_SECONDS`."""

    def __init__(self, audio: bytes, *, on_spoken: Callable[[], None], on_accepted: Callable[[], None]) -> None:
        self._frames = deque(split_frames(audio))
        self._on_spoken = on_spoken
        self._on_accepted = on_accepted
        self._spoken = asyncio.Event()
        self._accepted = asyncio.Event()

    async def run(self) -> None:
        await self._spoken.wait()
        try:
            async with asyncio.timeout(ACCEPT_SECONDS):
                await self._accepted.wait()
        except TimeoutError:
            return
        await asyncio.Event().wait()

    async def exchange(self, frame: bytes) -> bytes:
        if not self._frames:
            return SILENT_FRAME
        said = self._frames.popleft()
        if not self._frames:
            self._spoken.set()
            self._on_spoken()
        return said

    async def press(self, digit: str) -> None:
        if digit == ACCEPT_KEY and not self._accepted.is_set():
            self._accepted.set()
            self._on_accepted()

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CableEnd:
    """One end of a cable between two phones, each with its own clock. Closing one end ends the other."""

    heard: deque[bytes]
    sent: deque[bytes]
    cut: asyncio.Event
    cuts: asyncio.Event

    async def run(self) -> None:
        await self.cut.wait()

    async def exchange(self, frame: bytes) -> bytes:
        self.sent.append(frame)
        return self.heard.popleft() if self.heard else SILENT_FRAME

    async def press(self, digit: str) -> None:
        """Do nothing: people do not react to keys."""

    async def close(self) -> None:
        self.cuts.set()


def create_cable() -> tuple[CableEnd, CableEnd]:
    """Return the far ends that connect two phones."""
    there, back = deque[bytes](maxlen=CABLE_FRAMES), deque[bytes](maxlen=CABLE_FRAMES)
    cut_one, cut_other = asyncio.Event(), asyncio.Event()
    return CableEnd(back, there, cut_one, cut_other), CableEnd(there, back, cut_other, cut_one)


async def run_audio_clock(phone: Phone, far: FarEnd) -> None:
    """Exchange audio between the two ends every 20 ms, on an absolute schedule, until canceled."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        said = phone.speak()
        heard = await far.exchange(said)
        while phone.pressed:
            await far.press(phone.pressed.popleft())
        phone.hear(said, heard)
        due += FRAME_SECONDS
        await asyncio.sleep(due - loop.time())
