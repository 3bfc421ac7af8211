"""The person at a browser: microphone and speaker over a socket act as a telephone."""

import asyncio
from collections import deque
from typing import Final

from switchboard.plugin_sdk import BrowserSocket, Frame, transcode_audio

from switchboard_offline.loopback.browser_messages import DigitMessage, HangUpMessage, read_message
from switchboard_offline.loopback.frames import SILENT_FRAME, split_frames
from switchboard_offline.loopback.phone import Phone

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
