"""Browser calls over the platform's socket: the browser's microphone and speaker act as the telephone of a leg."""

import asyncio
import hashlib
import hmac
import time
from collections import deque
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import BrowserSocket, CallbackUrls, Frame, transcode_audio

from switchboard_offline.loopback.callbacks import IncomingCallNotice
from switchboard_offline.loopback.caller import Caller
from switchboard_offline.loopback.exchange import Exchange
from switchboard_offline.loopback.frames import SILENT_FRAME, split_frames
from switchboard_offline.loopback.leg import LoopbackLeg
from switchboard_offline.loopback.persons import Directory, Person
from switchboard_offline.loopback.phone import Phone

TOKEN_SECONDS: Final = 3600
DIAL_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 15.0
"""A browser whose microphone has sent nothing for this long is gone."""
MOST_LATE: Final = 15
CUSHION: Final = 3
"""20 ms frames: at most `MOST_LATE` wait for the line's clock, and `CUSHION` of silence precede audio after a gap."""
MOST_WAITING: Final = 50
MOST_BYTES: Final = 16_000


class DialMessage(msgspec.Struct, frozen=True, tag_field="event", tag="dial"):
    """First message of the browser."""

    token: str
    to_number: str
    from_number: str = ""


class DigitMessage(msgspec.Struct, frozen=True, tag_field="event", tag="digit"):
    """A pressed key."""

    digit: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#"]


class HangUpMessage(msgspec.Struct, frozen=True, tag_field="event", tag="hang_up"):
    """The browser ends the call."""


class ConnectedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="connected"):
    """The call was answered. `call_id` is the carrier's id."""

    call_id: str


class EndedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="ended"):
    """Last message, with the reason if the call was not answered or broke."""

    message: str | None = None


BrowserMessage: TypeAlias = DialMessage | DigitMessage | HangUpMessage
_asked: Final[msgspec.json.Decoder[BrowserMessage]] = msgspec.json.Decoder(BrowserMessage)


def create_token(secret: str, identity: str) -> str:
    """Create a token valid for one hour: expiry, identity, and signature."""
    claims = f"{int(time.time()) + TOKEN_SECONDS}.{identity}"
    return f"{claims}.{_sign_claims(secret, claims)}"


def verify_token(secret: str, token: str) -> str | None:
    """Return the identity of a token; None if it is forged or expired."""
    claims, _, proof = token.rpartition(".")
    if not hmac.compare_digest(proof.encode(), _sign_claims(secret, claims).encode()):
        return None
    until, _, identity = claims.partition(".")
    return identity if time.time() < int(until) else None


def _sign_claims(secret: str, claims: str) -> str:
    return hmac.new(secret.encode(), f"browser.{claims}".encode(errors="backslashreplace"), hashlib.sha256).hexdigest()


async def serve_browser_call(exchange: Exchange, secret: str, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
    """Handle one browser's call, from its first message to its end."""
    dial = await _receive_dial(socket)
    identity = verify_token(secret, dial.token) if dial is not None else None
    if dial is None or identity is None:
        await _send_message(socket, EndedMessage("The first message must dial with a valid token."))
        return
    leg = await exchange.add(callbacks.events)
    caller = BrowserCaller(exchange.directory, socket)
    announced = IncomingCallNotice(leg.call_id, dial.from_number, dial.to_number, identity)
    await exchange.run(leg, lambda leg: caller.ring(leg, exchange.post, callbacks.events, announced))
    await _send_message(
        socket,
        EndedMessage(leg.fault if caller.answered else caller.refused or leg.fault or "The call was not answered."),
    )


async def _receive_dial(socket: BrowserSocket) -> DialMessage | None:
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            message = await socket.receive()
    except TimeoutError:
        return None
    asked = _read(message) if isinstance(message, str) else None
    return asked if isinstance(asked, DialMessage) else None


def _read(message: str) -> BrowserMessage | None:
    try:
        return _asked.decode(message)
    except (msgspec.MsgspecError, UnicodeError):
        return None


async def _send_message(socket: BrowserSocket, message: ConnectedMessage | EndedMessage) -> None:
    try:
        await socket.send(msgspec.json.encode(message).decode())
    except ConnectionError:
        return


class BrowserCaller(Caller):
    """The person at the browser."""

    def __init__(self, directory: Directory, socket: BrowserSocket) -> None:
        super().__init__(directory)
        self._socket = socket
        self._heard: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._news = asyncio.Event()

    def person(self, leg: LoopbackLeg) -> Person:
        async def talk(phone: Phone) -> None:
            phone.on_heard = self._hear
            await _send_message(self._socket, ConnectedMessage(leg.call_id))
            tasks = [asyncio.create_task(self._receive(phone)), asyncio.create_task(self._send())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        return talk

    def _hear(self, frame: bytes) -> None:
        self._heard.append(frame)
        self._news.set()

    async def _receive(self, phone: Phone) -> None:
        while (message := await self._next()) is not None:
            if isinstance(message, bytes):
                self._speak(phone, message)
                continue
            asked = _read(message)
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
