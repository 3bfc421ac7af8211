"""Cartesia's voices over its WebSocket (https://docs.cartesia.ai/api-reference/tts/websocket), and live transcription.

The sentences of a reply continue one context, each flushed, so that their intonation joins; an interruption cancels it
(`GenerationRequest`, `FlushDone`, and `CancelContextRequest` of github.com/cartesia-ai/cartesia-python, August 2026).

Messages of Ink: https://docs.cartesia.ai/api-reference/stt/stt, and `STTManualFinalizeWebsocketResponse` of
github.com/cartesia-ai/cartesia-python, August 2026. Keyterms: https://docs.cartesia.ai/use-the-api/stt/keyterms.
"""

import asyncio
import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import aiohttp
from pydantic import BaseModel, Field, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextStream,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Transcript,
    TranscriptionRequest,
    Voice,
    Word,
)
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_speech.connection import (
    SILENCE_SECONDS,
    ConnectedProvider,
    DefaultModel,
    DefaultVoice,
    SettingsT,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    WordTimes,
    parse_vendor_data,
)
from switchboard_speech.languages import get_transcribed_language
from switchboard_speech.streams import SILENCE, SocketStream, StreamingTranscriber, time_words
from switchboard_speech.timing import ROUNDING_SECONDS, WordTimeline

VERSION: Final = "2026-03-01"
IDLE_SECONDS: Final = 120.0
"""Maximum idle time of a reused socket. Cartesia closes a socket after five idle minutes."""
SLOWEST, FASTEST = 0.6, 1.5
VOICES_A_PAGE: Final = 100
NEAREST_LANGUAGES: Final = {"sr": "hr", "bs": "hr", "sh": "hr"}
"""Languages that Sonic does not have, and refuses, with the one that it has of the same spoken language: of Serbian and
Bosnian, it lists Croatian alone (https://docs.cartesia.ai/build-with-cartesia/tts-models/older-models, November 2026).
"""
ENDS: Final = ("done", "flush_done")
"""Last messages of a text: of its context, or of a sentence of a context that continues."""


class CartesiaSettings(TextToSpeechSettings, SpeechVendorSettings):
    """Settings of Cartesia."""

    base_url: VendorUrl = HttpUrl("https://api.cartesia.ai")
    voice_id: DefaultVoice = "f786b574-daa5-4673-aa0c-cbe3e8534c02"
    model: DefaultModel = "sonic-3"


class _Times(BaseModel):
    words: WordTimes[str]
    start: WordTimes[float]
    end: WordTimes[float]


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
    data: VendorList[_Voice]
    has_more: bool = False


def _read_fault(body: str) -> VendorFault:
    failure = _Failure.model_validate_json(body)
    words = ": ".join(filter(None, (failure.title, failure.message or failure.error)))
    return VendorFault(failure.error_code, words or "no reason was given")


class _Cartesia(ConnectedProvider[SettingsT]):
    def connection(self, settings: SettingsT) -> VendorConnection:
        headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}", "Cartesia-Version": VERSION}
        return VendorConnection(self.title, settings, headers, _read_fault)


@dataclass(slots=True)
class _Line:
    """An open socket, on which `seconds` of the context `context_id` were spoken last."""

    socket: aiohttp.ClientWebSocketResponse
    context_id: str = ""
    seconds: float = 0.0
    used_at: float | None = None


class _Lines:
    """Pool of open sockets, because a handshake before a sentence is heard as a pause.

    A socket carries one text at a time. The next sentence of a reply finds the socket that has the reply's context.
    """

    def __init__(self, connection: VendorConnection) -> None:
        self._connection = connection
        self._idle: list[_Line] = []

    async def take(self, context_id: str) -> _Line:
        """Return the context's socket, or else the one that has been idle for the longest time, or a new one."""
        for line in sorted(self._idle, key=lambda line: line.context_id != context_id):
            if line not in self._idle:  # taken while another one was closed
                continue
            self._idle.remove(line)
            if not line.socket.closed and time.monotonic() - (line.used_at or 0.0) < IDLE_SECONDS:
                return line
            await line.socket.close()
        return await self.open()

    async def open(self) -> _Line:
        return _Line(await self._connection.socket("/tts/websocket"))

    def keep(self, line: _Line) -> None:
        line.used_at = time.monotonic()
        self._idle.append(line)

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().socket.close()


class CartesiaTextToSpeech(_Cartesia[CartesiaSettings], TextToSpeechProvider[CartesiaSettings]):
    """Sonic: mu-law from the vendor, with the time of each word."""

    name = "cartesia"
    title = "Cartesia"
    Settings = CartesiaSettings
    audio_format = PHONE_MULAW

    def __init__(self, settings: CartesiaSettings) -> None:
        super().__init__(settings)
        self._lines = _Lines(self._connection)

    async def close(self) -> None:
        await self._lines.close()
        await super().close()

    async def check(self) -> None:
        await self._connection.get("/voices", _Voices, params=[("limit", "1")])

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        context_id = request.reply_id or uuid4().hex
        line, message = await self._begin(context_id, self._order(request, context_id))
        timeline, words = WordTimeline(self.audio_format), list[Word]()
        try:
            while message.type not in ENDS:
                with parse_vendor_data(self.title):
                    audio = b64decode(message.data or "")
                    words += _words(message, line.seconds)
                if audio:
                    yield timeline.chunk(audio, words)
                    words.clear()
                message = await self._next(line, context_id)
        except (asyncio.CancelledError, GeneratorExit):
            await self._cancel(line, context_id)
            raise
        except BaseException:
            await line.socket.close()
            raise
        line.context_id, line.seconds = context_id, line.seconds + timeline.seconds
        self._lines.keep(line)
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

    async def _begin(self, context_id: str, order: dict[str, object]) -> tuple[_Line, _Message]:
        """Return a socket on which the text was requested, and its first message. A dead pooled socket is replaced."""
        line = await self._lines.take(context_id)
        while True:
            if line.context_id != context_id:
                line.seconds = 0.0
            try:
                await line.socket.send_str(json.dumps(order))
                return line, await self._next(line, context_id)
            except (ProviderError, aiohttp.ClientError) as error:
                dead = line.socket.closed
                await line.socket.close()
                if line.used_at is None or not dead:
                    raise error if isinstance(error, ProviderError) else self._connection.error(str(error)) from error
                line = await self._lines.open()
            except asyncio.CancelledError:
                await self._cancel(line, context_id)
                raise

    async def _cancel(self, line: _Line, context_id: str) -> None:
        """Stop an abandoned text, and keep the socket: audio on its way belongs to a context that nobody reads."""
        try:
            await line.socket.send_str(json.dumps({"context_id": context_id, "cancel": True}))
        except aiohttp.ClientError:
            await line.socket.close()
            return
        line.context_id = ""
        self._lines.keep(line)

    async def _next(self, line: _Line, context_id: str) -> _Message:
        """Return the next message about a text. Raises `ProviderError`."""
        while True:
            received = await self._connection.receive(line.socket, SILENCE_SECONDS)
            if received.type is not aiohttp.WSMsgType.TEXT:
                raise self._connection.closed_error(received)
            with parse_vendor_data(self.title):
                message = _Message.model_validate_json(received.data)
            if message.type == "error" and message.context_id in (None, context_id):
                raise self._connection.status_error(message.status_code or 500, received.data)
            if message.context_id == context_id:
                return message

    def _order(self, request: SpeechRequest, context_id: str) -> dict[str, object]:
        """Return the request of a sentence. In a reply it continues the reply's context, which ends by itself."""
        continues = bool(request.reply_id)
        voice = request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id
        order: dict[str, object] = {
            "context_id": context_id,
            "model_id": request.model or self.settings.model,
            # The texts of a context are joined as they are.
            "transcript": f"{request.text} " if continues else request.text,
            "voice": {"mode": "id", "id": voice},
            "output_format": {"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8000},
            "add_timestamps": True,
            "continue": continues,
            **({"flush": True, "max_buffer_delay_ms": 0} if continues else {}),
        }
        if (language := get_single_language(request.language)) is not None:
            order["language"] = NEAREST_LANGUAGES.get(language, language)
        if request.speed != 1.0:
            order["generation_config"] = {"speed": min(FASTEST, max(SLOWEST, request.speed))}
        return order


def _words(message: _Message, begun: float) -> list[Word]:
    """Return words timed from the start of the sentence, which begins at `begun` seconds of its context.

    The reference does not say from where a continued context counts. Times before `begun` count from the sentence.
    """
    times = message.word_timestamps
    if times is None:
        return []
    since = begun if times.start and times.start[0] >= begun - ROUNDING_SECONDS else 0.0
    return [
        Word(word, max(0, round((start - since) * 1000)), round((end - since) * 1000))
        for word, start, end in zip(times.words, times.start, times.end, strict=False)
    ]


DETECTING: Final = "ink-2"
"""Prefix of models that detect the language, and accept keyterms."""
DETECTED_LANGUAGES: Final = frozenset({None, "en", "es", "fr", "hi", "ja"})
"""Languages of Ink 2 (https://docs.cartesia.ai/use-the-api/stt/languages)."""
WHISPER: Final = "ink-whisper"
MOST_KEYTERMS: Final = 100
LONGEST_KEYTERMS: Final = 1200
"""Characters of all keyterms together."""


class InkSettings(SpeechVendorSettings):
    """Settings of Cartesia's transcription."""

    base_url: VendorUrl = HttpUrl("https://api.cartesia.ai")
    model: str | None = Field(
        None, description="Model for agents that name none. By default Ink 2, or Ink Whisper for other languages."
    )


class _InkWord(BaseModel):
    word: str
    start: float
    end: float

    def list_times(self) -> list[tuple[str, float, float]]:
        return [(self.word.strip(), self.start, self.end)]


class _InkColumns(BaseModel):
    """Words in the form of a voice's times, which Cartesia's SDK has here too (`shared/word_timestamps.py`)."""

    words: list[str]
    start: list[float]
    end: list[float]

    def list_times(self) -> list[tuple[str, float, float]]:
        return list(zip([word.strip() for word in self.words], self.start, self.end, strict=False))


class _InkMessage(BaseModel):
    """A chunk of the words since the last final chunk, or another message, of which an error has a status.

    Each entry of `words` is a word with its times (https://docs.cartesia.ai/use-the-api/stt/word-timestamps), or has
    several of them in columns.
    """

    type: str
    text: str = ""
    is_final: bool = False
    words: WordTimes[_InkWord | _InkColumns] = []
    status_code: int | None = None


class InkStream(SocketStream):
    """Joins final chunks, which Cartesia may cut within a word, to utterances.

    Cartesia closes a stream after three minutes without a message, so silence is sent.
    """

    KEEP_ALIVE = SILENCE * 160
    FINALIZE = "finalize"
    CLOSE = "close"

    def __init__(self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(connection, socket)
        self._text = ""
        self._times: list[tuple[str, float, float]] = []

    def handle_message(self, message: str) -> None:
        said = _InkMessage.model_validate_json(message)
        if said.type == "error":
            raise self._connection.status_error(said.status_code or 500, message)
        if said.type == "transcript":
            text = self._text + said.text
            if said.is_final:
                self._text = text
                self._times += [times for entry in said.words for times in entry.list_times()]
            if said.text.strip():
                self.add_transcript(Transcript(text.strip(), is_final=False))
        elif said.type == "flush_done" and (self._text or self.is_finalizing):
            self._add_utterance(finalized=self.is_finalizing)

    def confirm_end(self) -> None:
        self._add_utterance(finalized=True)

    def _add_utterance(self, *, finalized: bool) -> None:
        text, times, self._text, self._times = self._text.strip(), self._times, "", []
        self.add_transcript(Transcript(text, is_final=True, finalized=finalized, words=time_words(times)))


class CartesiaSpeechToText(_Cartesia[InkSettings], StreamingTranscriber[InkSettings]):
    """Ink with the phone's mu-law audio; the engine decides when an utterance is over."""

    name = "cartesia"
    title = "Cartesia Ink"
    Settings = InkSettings

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        language = get_transcribed_language(request.language)
        model = request.model or self.settings.model or (DETECTING if language in DETECTED_LANGUAGES else WHISPER)
        detects = model.startswith(DETECTING)
        # The first phrases that are together within Cartesia's limits.
        lengths = accumulate(map(len, request.hints[:MOST_KEYTERMS]))
        keyterms = [hint for hint, length in zip(request.hints, lengths, strict=False) if length <= LONGEST_KEYTERMS]
        params = [
            ("model", model),
            ("encoding", "pcm_mulaw"),
            ("sample_rate", "8000"),
            *([("language", language)] if language is not None and not detects else []),
            *(("keyterm", hint) for hint in keyterms if detects),
        ]
        return InkStream(self._connection, await self._connection.socket("/stt/websocket", params=params))
