"""A browser's socket: its messages, and the person at the browser, whose microphone and speaker act as a telephone.

Audio is binary: 16-bit PCM of 8 kHz in both directions.
"""

import asyncio
from collections import deque
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import BrowserSocket, Frame, transcode_audio

from switchboard_offline.loopback.phone import SILENT_FRAME, Phone, split_frames


class DialMessage(msgspec.Struct, frozen=True, tag_field="event", tag="dial"):
    """First message of a browser that calls."""

    token: str
    to_number: str
    from_number: str = ""


class RegisterMessage(msgspec.Struct, frozen=True, tag_field="event", tag="register"):
    """First message of a client that waits for calls."""

    token: str


class AnswerMessage(msgspec.Struct, frozen=True, tag_field="event", tag="answer"):
    """The client answers the call that rings."""


class DeclineMessage(msgspec.Struct, frozen=True, tag_field="event", tag="decline"):
    """The client declines the call that rings."""


class DigitMessage(msgspec.Struct, frozen=True, tag_field="event", tag="digit"):
    """A pressed key."""

    digit: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#"]


class HangUpMessage(msgspec.Struct, frozen=True, tag_field="event", tag="hang_up"):
    """The browser ends the call."""


class RegisteredMessage(msgspec.Struct, frozen=True, tag_field="event", tag="registered"):
    """The client waits for calls. Repeated while it does, so that proxies keep the socket open."""


class RingingMessage(msgspec.Struct, frozen=True, tag_field="event", tag="ringing"):
    """A call rings, from the number that it shows."""

    from_number: str


class CanceledMessage(msgspec.Struct, frozen=True, tag_field="event", tag="canceled"):
    """The call no longer rings: another client has answered it, none has in time, or the caller has hung up."""


class ConnectedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="connected"):
    """The call was answered. `call_id` is the carrier's id."""

    call_id: str


class EndedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="ended"):
    """Last message, with the reason if the call was not answered or broke, or the client no longer waits."""

    message: str | None = None


FromBrowser: TypeAlias = DialMessage | RegisterMessage | AnswerMessage | DeclineMessage | DigitMessage | HangUpMessage
ToBrowser: TypeAlias = RegisteredMessage | RingingMessage | CanceledMessage | ConnectedMessage | EndedMessage
_decoder: Final[msgspec.json.Decoder[FromBrowser]] = msgspec.json.Decoder(FromBrowser)


def read_message(message: str | bytes | None) -> FromBrowser | None:
    """Return a browser's message; None for audio, the end, and anything that is not understood."""
    if not isinstance(message, str):
        return None
    try:
        return _decoder.decode(message)
    except (msgspec.MsgspecError, UnicodeError):
        return None


async def send_to_browser(socket: BrowserSocket, message: ToBrowser) -> None:
    """Send a message; no effect on a closed socket."""
    try:
        await socket.send(msgspec.json.encode(message).decode())
    except ConnectionError:
        return


IDLE_SECONDS: Final = 15.0
"""A browser whose microphone has sent nothing for this long is gone."""
MOST_LATE: Final = 15
CUSHION: Final = 3
"""20 ms frames: at most `MOST_LATE` wait for the line's clock, and `CUSHION` of silence precede audio after a gap."""
MOST_WAITING: Final = 50
MOST_BYTES: Final = 16_000


class Headset:
    """Microphone, speaker, and keys of one connected browser."""

    def __init__(self, socket: BrowserSocket) -> None:
        self._socket = socket
        self._heard: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._news = asyncio.Event()

    async def talk(self, phone: Phone) -> None:
        """Talk over a phone until the browser hangs up, or is gone."""
        phone.on_heard = self._hear
        tasks = [asyncio.create_task(self._receive(phone)), asyncio.create_task(self._send())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _hear(self, frame: bytes) -> None:
        self._heard.append(frame)
        self._news.set()

    async def _receive(self, phone: Phone) -> None:
        while (message := await self._next()) is not None:
            if isinstance(message, bytes):
                self._speak(phone, message)
                continue
            asked = read_message(message)
            if isinstance(asked, HangUpMessage):
                return
            if isinstance(asked, DigitMessage):
                phone.press(asked.digit)

    async def _next(self) -> Frame | None:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                return await self._socket.receive()
        except TimeoutError:
            return None

    def _speak(self, phone: Phone, pcm: bytes) -> None:
        """Queue audio to be spoken. A burst after a stall is dropped, because it would stay late for the rest of the
        call.
        """
        if len(pcm) % 2 or len(pcm) > MOST_BYTES or phone.unsaid > MOST_LATE:
            return
        cushion = [] if phone.unsaid else [SILENT_FRAME] * CUSHION
        phone.add([*cushion, *split_frames(transcode_audio(pcm, "pcm16", "mulaw"))])

    async def _send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._heard:
                await self._socket.send(transcode_audio(self._heard.popleft(), "mulaw", "pcm16"))
