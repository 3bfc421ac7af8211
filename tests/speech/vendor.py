"""Code that the speech vendors' test servers share: they listen, check the key, record requests, and fail as
planned.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Self, TypeVar

import numpy as np
from aiohttp import web
from switchboard.plugin_sdk import Provider, ProviderSettings, SpeechRequest, SpeechToTextStream, Transcript, Word
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback.persons import VOICE

from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.recorded_audio import QUIET, Samples, find_best_place

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])
KEY = "the-key-of-the-vendor"
SENTENCE = "can i speak to a human"
LEAST_MATCH = 0.6
PHRASES = (SENTENCE, "thank you", "goodbye", "what are your opening hours")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request: its path, query string, and body."""

    path: str
    query: list[tuple[str, str]]
    body: dict[str, object]


class SpeechVendor(ABC):
    """A vendor's server on this machine.

    `refusals` are the statuses of the next requests of any kind. `hangs`: no request gets a response.
    """

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[ReceivedRequest] = []
        self.refusals: list[int] = []
        self.hangs = False
        self.open: list[web.Request] = []

    @abstractmethod
    def routes(self) -> list[web.RouteDef]: ...

    @abstractmethod
    def has_key(self, request: web.Request) -> bool: ...

    @abstractmethod
    def refusal(self, status: int) -> web.Response:
        """Return a refusal in the vendor's format."""

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Self]:
        vendor = cls()
        application = web.Application(middlewares=[vendor._admit])
        application.add_routes(vendor.routes())
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        vendor.address = f"http://{host}:{port}"
        try:
            yield vendor
        finally:
            await runner.cleanup()

    async def drop(self) -> None:
        """Break every open socket without a close message."""
        for request in self.open:
            if request.transport is not None:
                request.transport.abort()
        self.open.clear()

    @web.middleware
    async def _admit(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        body = await request.read() if request.content_type == "application/json" else b""
        self.requests.append(
            ReceivedRequest(request.path, list(request.query.items()), json.loads(body) if body else {})
        )
        if self.hangs:
            await asyncio.Event().wait()
        if not self.has_key(request):
            return self.refusal(401)
        if self.refusals:
            return self.refusal(self.refusals.pop(0))
        return await handler(request)

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.open.append(request)
        return socket


@asynccontextmanager
async def in_use(provider: ProviderT) -> AsyncIterator[ProviderT]:
    """Open a provider."""
    await provider.open()
    yield provider
    await provider.close()


async def receive_transcript(stream: SpeechToTextStream) -> Transcript:
    """Return the next transcript of a stream."""
    async with asyncio.timeout(60):
        return await anext(aiter(stream))


async def receive_utterance(stream: SpeechToTextStream) -> list[Transcript]:
    """Return the transcripts until an utterance is finalized."""
    heard = [await receive_transcript(stream)]
    while not heard[-1].finalized:
        heard.append(await receive_transcript(stream))
    return heard


def convert_to_mulaw(pcm: bytes) -> bytes:
    return encode_audio(np.frombuffer(pcm, dtype="<i2"), "mulaw")


def synthesize_speech(text: str = SENTENCE) -> bytes:
    """Return speech as a caller's phone sends it."""
    return convert_to_mulaw(speak_as_caller(text))


def is_quiet(audio: bytes) -> bool:
    """Return whether mu-law audio is silence."""
    return bool(np.abs(decode_audio(audio, "mulaw").astype(np.int32)).max() < 300)


def recognize_mulaw(audio: bytes, hints: tuple[str, ...] = PHRASES) -> str:
    """Return the phrases, of `hints` if there are some, whose sound is in mu-law audio.

    A recognizer of words takes seconds on a busy machine, in which a vendor would have answered.
    """
    heard = decode_audio(audio, "mulaw").astype(np.float64)
    found = {phrase: find_best_place(_get_sound(phrase), heard) for phrase in hints or PHRASES}
    spoken = [(place, phrase) for phrase, (match, place) in found.items() if match > LEAST_MATCH]
    return " ".join(phrase for _, phrase in sorted(spoken))


@cache
def _get_sound(phrase: str) -> Samples:
    sound = np.frombuffer(speak_as_caller(phrase), "<i2").astype(np.float64)
    (loud,) = np.nonzero(np.abs(sound) > QUIET)
    return np.asarray(sound[loud[0] : loud[-1] + 1])


async def collect_synthesis(text: str, speed: float) -> tuple[bytes, list[Word]]:
    """Return synthesized speech in mu-law, and its word times: the same for the same text."""
    chunks = [
        chunk
        async for chunk in EspeakTextToSpeech(ProviderSettings()).synthesize(SpeechRequest(text, VOICE, speed=speed))
    ]
    return convert_to_mulaw(b"".join(chunk.audio for chunk in chunks)), [
        word for chunk in chunks for word in chunk.words
    ]
