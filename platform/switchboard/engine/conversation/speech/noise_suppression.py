"""Noise suppression of a call, between the carrier's audio and voice activity detection.

It takes about 0.6 ms of a core for a frame of 20 ms, most of it without the interpreter's lock. Threads of its own keep
that from the event loop, from the process's other threads, and from each other's calls.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from switchboard.engine.conversation.call import Clock
from switchboard.engine.conversation.speech.rnnoise import FRAME, RNNoiseStream
from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

logger = structlog.get_logger()
THREADS: Final = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="noise-suppression")
MAX_WAIT_SECONDS: Final = 0.2
"""Audio that has waited longer is handed on with its noise, so that no call falls behind on a busy machine."""


class NoiseSuppressor:
    """Suppresses the noise of one call's audio, and hands it on in order.

    Raises `RNNoiseMissing` if RNNoise is not installed.
    """

    def __init__(self, encoding: Encoding, clock: Clock, handle_audio: Callable[[bytes], None]) -> None:
        self._encoding: Encoding = encoding
        self._clock = clock
        self._handle_audio = handle_audio
        self._stream = RNNoiseStream()
        self._backlog = bytearray()
        self._waiting_since = 0.0
        self._wake = asyncio.Event()
        self._was_late = False

    def add_audio(self, audio: bytes) -> None:
        """Add the call's next audio."""
        if not self._wake.is_set():
            self._waiting_since = self._clock()
        self._backlog += audio
        self._wake.set()

    async def run(self) -> None:
        """Suppress noise until canceled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            audio = bytes(self._backlog[: len(self._backlog) // FRAME * FRAME])
            del self._backlog[: len(audio)]
            if audio:
                self._handle_audio(await self._suppress_in_time(audio))

    async def _suppress_in_time(self, audio: bytes) -> bytes:
        if self._clock() - self._waiting_since <= MAX_WAIT_SECONDS:
            return await asyncio.get_running_loop().run_in_executor(THREADS, self._suppress, audio)
        if not self._was_late:
            self._was_late = True
            logger.warning("noise suppression is late, and leaves out some of this call's audio")
        return audio

    def _suppress(self, audio: bytes) -> bytes:
        return encode_audio(self._stream.suppress(decode_audio(audio, self._encoding)), self._encoding)
