"""Cartesia's voices over its WebSocket (https://docs.cartesia.ai/api-reference/tts/websocket)."""

import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import aiohttp
from pydantic import BaseModel, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    Voice,
    Word,
)
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_speech.connection import (
    RETRYABLE,
    SILENCE_SECONDS,
    ConnectedProvider,
    DefaultModel,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorUrl,
    parse_vendor_data,
)
from switchboard_speech.timing import WordTimeline

VERSION: Final = "2026-03-01"
IDLE_SECONDS: Final = 120.0
"""Maximum idle time of a reused socket. Cartesia closes a socket after five idle minutes."""
SLOWEST, FASTEST = 0.6, 1.5
VOICES_A_PAGE: Final = 100


class CartesiaSettings(SpeechVendorSettings):
    """Settings of Cartesia."""

    base_url: VendorUrl = HttpUrl("https://api.cartesia.ai")
    voice_id: DefaultVoice = "f786b574-daa5-4673-aa0c-cbe3e8534c02"
    model: DefaultModel = "sonic-3"


class _Times(BaseModel):
    words: list[str]
    start: list[float]
    end: list[float]


class _Failure(BaseModel):
    title: str | None = None
    message: str | None = None
    error: str | None = None
    error_code: str | None = None
    status_code: int | None = None


class _Message(_Failure):
    type: str
    context_id: str | None = None
    data: str | None = None
    word_timestamps: _Times | None = None


class _Voice(BaseModel):
    id: str
    name: str
    language: str = ""
    gender: str | None = None


class _Voices(BaseModel):
    data: list[_Voice]
    has_more: bool = False


def read_cartesia_fault(body: str) -> VendorFault:
    """Read a fault. Raises `ValueError`."""
    return _fault(_Failure.model_validate_json(body))


def _fault(failure: _Failure) -> VendorFault:
    words = ": ".join(filter(None, (failure.title, failure.message or failure.error)))
    return VendorFault(failure.error_code, words or "no reason was given")


class _Sockets:
    """Pool of open sockets, because a handshake before a sentence is heard as a pause.

    A socket carries one text at a time.
    """

    def __init__(self, connection: VendorConnection) -> None:
        self._connection = connection
        self._idle: list[tuple[float, aiohttp.ClientWebSocketResponse]] = []

    async def take(self) -> tuple[aiohttp.ClientWebSocketResponse, bool]:
        """Return a socket, and whether it was used before."""
        while self._idle:
            since, socket = self._idle.pop()
            if not socket.closed and time.monotonic() - since < IDLE_SECONDS:
                return socket, True
            await socket.close()
        return await self.fresh(), False

    async def fresh(self) -> aiohttp.ClientWebSocketResponse:
        return await self._connection.socket("/tts/websocket")

    def keep(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._idle.append((time.monotonic(), socket))

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop()[1].close()


class CartesiaTextToSpeech(ConnectedProvider[CartesiaSettings], TextToSpeechProvider[CartesiaSettings]):
    """Sonic: mu-law from the vendor, with the time of each word."""

    name = "cartesia"
    title = "Cartesia"
    Settings = CartesiaSettings
    audio_format = PHONE_MULAW

    def __init__(self, settings: CartesiaSettings) -> None:
        super().__init__(settings)
        self._sockets = _Sockets(self._connection)

    def connection(self, settings: CartesiaSettings) -> VendorConnection:
        headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}", "Cartesia-Version": VERSION}
        return VendorConnection(self.title, settings, headers, read_cartesia_fault)

    async def close(self) -> None:
        await self._sockets.close()
        await super().close()

    async def check(self) -> None:
        await self._connection.get("/voices", _Voices, params=[("limit", "1")])

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        order = self._order(request)
        socket, first = await self._begin(order)
        finished = False
        timeline, words = WordTimeline(self.audio_format), list[Word]()
        try:
            message = first
            while message.type != "done":
                with parse_vendor_data(self.title):
                    audio = b64decode(message.data or "")
                    words += _words(message)
                if audio:
                    yield timeline.chunk(audio, words)
                    words.clear()
                message = await self._next(socket, order["context_id"])
            finished = True
        finally:
            # An abandoned text has audio in flight, so its socket cannot be reused.
            if finished:
                self._sockets.keep(socket)
            else:
                await socket.close()
        if words:
            yield timeline.chunk(b"", words)

    async def list_voices(self) -> Sequence[Voice]:
        found: list[_Voice] = []
        params = [("limit", str(VOICES_A_PAGE))]
        while True:
            page = await self._connection.get(
                "/voices", _Voices, params=params + ([("starting_after", found[-1].id)] if found else [])
            )
            found += page.data
            if not page.has_more or not page.data:
                return [Voice(voice.id, voice.name, voice.language, voice.gender) for voice in found]

    async def has_voice(self, voice_id: str) -> bool:
        # The list is the vendor's whole library, in pages, so ask for the voice itself.
        return await self._connection.has(f"/voices/{quote(voice_id, safe='')}")

    async def _begin(self, order: dict[str, object]) -> tuple[aiohttp.ClientWebSocketResponse, _Message]:
        """Return a socket on which the text was requested, and its first message. A dead pooled socket is replaced."""
        socket, used = await self._sockets.take()
        while True:
            try:
                await socket.send_str(json.dumps(order))
                return socket, await self._next(socket, order["context_id"])
            except (ProviderError, aiohttp.ClientError) as error:
                dead = socket.closed
                await socket.close()
                if not (used and dead):
                    raise error if isinstance(error, ProviderError) else self._connection.error(str(error)) from error
                socket, used = await self._sockets.fresh(), False
            except BaseException:
                await socket.close()
                raise

    async def _next(self, socket: aiohttp.ClientWebSocketResponse, context_id: object) -> _Message:
        """Return the next message about a text. Raises `ProviderError`."""
        while True:
            try:
                received = await socket.receive(SILENCE_SECONDS)
            except TimeoutError:
                raise self._connection.error(f"nothing came for {SILENCE_SECONDS:.0f} seconds") from None
            if received.type is not aiohttp.WSMsgType.TEXT:
                raise self._connection.error(f"the stream was lost ({received.extra or received.data})")
            with parse_vendor_data(self.title):
                message = _Message.model_validate_json(received.data)
            if message.type == "error":
                fault, status = _fault(message), message.status_code or 500
                raise self._connection.error(
                    fault.message, code=fault.code or str(status), retryable=status >= 500 or status in RETRYABLE
                )
            if message.context_id == context_id:
                return message

    def _order(self, request: SpeechRequest) -> dict[str, object]:
        order: dict[str, object] = {
            "context_id": uuid4().hex,
            "model_id": request.model or self.settings.model,
            "transcript": request.text,
            "voice": {"mode": "id", "id": request.voice_id or self.settings.voice_id},
            "output_format": {"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8000},
            "add_timestamps": True,
            "continue": False,
        }
        if (language := get_single_language(request.language)) is not None:
            order["language"] = language
        if request.speed != 1.0:
            order["generation_config"] = {"speed": min(FASTEST, max(SLOWEST, request.speed))}
        return order


def _words(message: _Message) -> list[Word]:
    times = message.word_timestamps
    if times is None:
        return []
    return [
        Word(word, round(start * 1000), round(end * 1000))
        for word, start, end in zip(times.words, times.start, times.end, strict=True)
    ]
