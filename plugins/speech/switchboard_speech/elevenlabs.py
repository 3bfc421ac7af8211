"""ElevenLabs' voices (https://elevenlabs.io/docs/api-reference/text-to-speech), and Scribe, which transcribes live.

Each sentence is one request to the streaming endpoint with timestamps. The WebSocket for partial text has no advantage:
sentences are complete, a reused connection needs no handshake, and a refusal has a status instead of a closed socket.

Messages of Scribe: https://elevenlabs.io/docs/api-reference/speech-to-text/v-1-speech-to-text-realtime. Limits of
keyterms: https://elevenlabs.io/docs/eleven-api/guides/how-to/speech-to-text/batch/keyterm-prompting. Languages:
https://elevenlabs.io/docs/overview/capabilities/speech-to-text.
"""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

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
)
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_speech.connection import (
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
from switchboard_speech.streams import SILENCE, ChunkedStream, StreamingTranscriber, time_words
from switchboard_speech.timing import WordAssembler, WordTimeline

SLOWEST, FASTEST = 0.7, 1.2
VOICES_A_PAGE: Final = "100"
ENFORCES_LANGUAGE: Final = "_v2_5"
"""Suffix of models that accept a language code; others refuse the request."""

WITHOUT_STITCHING: Final = "eleven_v3"
"""Prefix of models that refuse a previous text."""
LONGEST_PREVIOUS_TEXT: Final = 500
"""Letters of the previous text that are sent: the last sentences decide the intonation."""
FILIPINO: Final = ("tl", "fil")
"""The code that most vendors have for Filipino, and ElevenLabs' own (https://elevenlabs.io/docs/overview/models)."""


NoRetention = Annotated[bool, Field(description="Zero retention mode, which only enterprise accounts have.")]


class ElevenLabsSettings(TextToSpeechSettings, SpeechVendorSettings):
    """Settings of ElevenLabs (https://elevenlabs.io/docs/api-reference/text-to-speech/stream)."""

    base_url: VendorUrl = HttpUrl("https://api.elevenlabs.io")
    voice_id: DefaultVoice = "JBFqnCBsd6RMkjVDRZzb"
    model: DefaultModel = "eleven_flash_v2_5"
    stability: float | None = Field(None, description="Stability of the voice. By default that of each voice.")
    similarity_boost: float | None = Field(
        None, description="Similarity of the voice to its original. By default that of each voice."
    )
    no_retention: NoRetention = False


class _Alignment(BaseModel):
    """Alignment of the text as sent (`normalized_alignment` is of the normalized text).

    The reference says that the WebSocket's times count from each chunk, and says nothing about this endpoint. Its
    examples, and Pipecat, which has used it since 2025, count from the start of the response. Times that jump back are
    taken to count from a chunk, so that both cases work.
    """

    characters: WordTimes[str] = []
    character_start_times_seconds: WordTimes[float] = []
    character_end_times_seconds: WordTimes[float] = []


class _Chunk(BaseModel):
    audio_base64: str
    alignment: _Alignment | None = None


class _Reason(BaseModel):
    status: str | None = None
    code: str | None = None
    message: str


class _Invalid(BaseModel):
    loc: list[str | int] = []
    msg: str


class _Failure(BaseModel):
    detail: _Reason | list[_Invalid] | str


class _Voice(BaseModel):
    voice_id: str
    name: str | None = None
    labels: Mapping[str, str] | None = None

    def describe(self) -> Voice:
        labels = self.labels or {}
        return Voice(self.voice_id, self.name or self.voice_id, labels.get("language", ""), labels.get("gender"))


class _Voices(BaseModel):
    voices: VendorList[_Voice]
    has_more: bool = False
    next_page_token: str | None = None


def _read_fault(body: str) -> VendorFault:
    detail = _Failure.model_validate_json(body).detail
    if isinstance(detail, str):
        return VendorFault(None, detail)
    if isinstance(detail, _Reason):
        return VendorFault(detail.status or detail.code, detail.message)
    return VendorFault(None, "; ".join(f"{'.'.join(map(str, invalid.loc))}: {invalid.msg}" for invalid in detail))


class _ElevenLabs(ConnectedProvider[SettingsT]):
    def connection(self, settings: SettingsT) -> VendorConnection:
        return VendorConnection(self.title, settings, {"xi-api-key": settings.api_key.get_secret_value()}, _read_fault)


def _get_language(language: str | None) -> str | None:
    """Return ElevenLabs' code of a base language."""
    usual, own = FILIPINO
    return own if language == usual else language


class ElevenLabsTextToSpeech(_ElevenLabs[ElevenLabsSettings], TextToSpeechProvider[ElevenLabsSettings]):
    """Mu-law from the vendor, with the time of each word."""

    name = "elevenlabs"
    title = "ElevenLabs"
    Settings = ElevenLabsSettings
    audio_format = PHONE_MULAW

    async def check(self) -> None:
        await self._connection.get("/v2/voices", _Voices, params=[("page_size", "1")])

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        voice = request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id
        path = f"/v1/text-to-speech/{quote(voice, safe='')}/stream/with-timestamps"
        timeline, spelling = WordTimeline(self.audio_format), WordAssembler()
        params = [("output_format", "ulaw_8000")]
        if self.settings.no_retention:
            params.append(("enable_logging", "false"))
        async with self._connection.request("POST", path, params=params, body=self._body(request)) as response:
            async for line in response.content:
                if line.strip():
                    with parse_vendor_data(self.title):
                        chunk = _Chunk.model_validate_json(line)
                        audio, timing = b64decode(chunk.audio_base64), chunk.alignment or _Alignment()
                    starts, ends = timing.character_start_times_seconds, timing.character_end_times_seconds
                    words = spelling.add(timing.characters, starts, ends, begun=timeline.seconds)
                    yield timeline.chunk(audio, words)
        if rest := spelling.rest():
            yield timeline.chunk(b"", rest)

    async def list_voices(self) -> Sequence[Voice]:
        """List all voices, page by page, because the endpoint without pages refuses accounts with more than 500
        voices.
        """
        found: list[_Voice] = []
        params = [("page_size", VOICES_A_PAGE)]
        while True:
            page = await self._connection.get("/v2/voices", _Voices, params=params)
            found += page.voices
            if not page.has_more or page.next_page_token is None:
                return [voice.describe() for voice in found]
            params = [("page_size", VOICES_A_PAGE), ("next_page_token", page.next_page_token)]

    async def has_voice(self, voice_id: str) -> bool:
        """Ask for the voice itself, because older voices, used in all examples, are in no list."""
        return await self._connection.has(f"/v1/voices/{quote(voice_id, safe='')}")

    def _body(self, request: SpeechRequest) -> dict[str, object]:
        model = request.model or self.settings.model
        voice = {
            "speed": min(FASTEST, max(SLOWEST, request.speed)) if request.speed != 1.0 else None,
            "stability": self.settings.stability,
            "similarity_boost": self.settings.similarity_boost,
        }
        body: dict[str, object] = {"text": request.text, "model_id": model}
        if request.previous_text and not model.startswith(WITHOUT_STITCHING):
            body["previous_text"] = request.previous_text[-LONGEST_PREVIOUS_TEXT:]
        if given := {name: value for name, value in voice.items() if value is not None}:
            body["voice_settings"] = given
        language = _get_language(get_single_language(request.language))
        if language is not None and model.endswith(ENFORCES_LANGUAGE):
            body["language_code"] = language
        return body


SHORTEST_COMMIT: Final = round(0.32 * PHONE_MULAW.bytes_per_second)
"""ElevenLabs ignores a commit of less than 0.3 seconds (https://github.com/elevenlabs/packages/issues/378)."""
MOST_KEYTERMS: Final = 50
LONGEST_KEYTERM: Final = 20
MOST_WORDS_OF_A_KEYTERM: Final = 5
NOTICES: Final = frozenset({"commit_throttled", "insufficient_audio_activity"})
"""Messages with an error that do not end the session."""
FINAL_ERRORS: Final = frozenset({
    "auth_error", "quota_exceeded", "unaccepted_terms", "unaccepted_terms_error", "input_error", "chunk_size_exceeded",
    "invalid_request",
})  # fmt: skip
"""Errors that a retry does not change (`RealtimeEvents` of github.com/elevenlabs/elevenlabs-python, pull request 695).
`invalid_request` is the answer to an unknown model (https://github.com/elevenlabs/ui/issues/82).
"""


class ScribeSettings(SpeechVendorSettings):
    """Settings of ElevenLabs' transcription."""

    base_url: VendorUrl = HttpUrl("https://api.elevenlabs.io")
    model: DefaultModel = "scribe_v2_realtime"
    no_retention: NoRetention = False


class _Word(BaseModel):
    text: str = ""
    type: str = "word"
    start: float | None = None
    end: float | None = None
    logprob: float | None = None


class _Message(BaseModel):
    message_type: str
    text: str = ""
    words: WordTimes[_Word] = []
    error: str | None = None


def _build_chunk(audio: bytes, *, commit: bool = False) -> str:
    return json.dumps({
        "message_type": "input_audio_chunk",
        "audio_base_64": b64encode(audio).decode(),
        "commit": commit,
        "sample_rate": PHONE_MULAW.sample_rate,
    })  # fmt: skip


def _error_of(connection: VendorConnection, message: _Message) -> ProviderError:
    return connection.error(
        message.error or message.message_type,
        code=message.message_type,
        retryable=message.message_type not in FINAL_ERRORS,
    )


class ScribeStream(ChunkedStream):
    """Stream in messages of 100 milliseconds, which ElevenLabs recommends; an empty one keeps it alive."""

    KEEP_ALIVE = _build_chunk(b"")
    FINALIZE = _build_chunk(b"", commit=True)
    SHORTEST, LONGEST = 800, 8000

    def __init__(self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(connection, socket)
        self._committed_bytes = 0

    def encode(self, audio: bytes) -> str:
        return _build_chunk(audio)

    async def finalize(self) -> None:
        await self.send_rest()
        uncommitted = self.sent_bytes - self._committed_bytes
        if not uncommitted:
            self.confirm_end()
            return
        if uncommitted < SHORTEST_COMMIT:
            await self.send(SILENCE * (SHORTEST_COMMIT - uncommitted))
            await self.send_rest()
        self._committed_bytes = self.sent_bytes
        await super().finalize()

    def handle_message(self, message: str) -> None:
        said = _Message.model_validate_json(message)
        if said.message_type == "partial_transcript" and said.text:
            self.add_transcript(Transcript(said.text, is_final=False))
        elif said.message_type == "committed_transcript_with_timestamps":
            # The same words come before, in a `committed_transcript` without times.
            if said.text or self.is_finalizing:
                self._add_final_transcript(said)
        elif said.message_type == "commit_throttled" and self.is_finalizing:
            self.confirm_end()
        elif said.error is not None and said.message_type not in NOTICES:
            raise _error_of(self._connection, said)

    def _add_final_transcript(self, said: _Message) -> None:
        words = [word for word in said.words if word.type == "word"]
        times = [(word.text, word.start, word.end) for word in words if word.start is not None and word.end is not None]
        logarithms = [word.logprob for word in words if word.logprob is not None]
        confidence = math.exp(min(0.0, sum(logarithms) / len(logarithms))) if logarithms else None
        self.add_transcript(
            Transcript(
                said.text, is_final=True, finalized=self.is_finalizing, confidence=confidence, words=time_words(times)
            )
        )


class ElevenLabsSpeechToText(_ElevenLabs[ScribeSettings], StreamingTranscriber[ScribeSettings]):
    """Scribe with the phone's mu-law audio; the engine decides when words are committed."""

    name = "elevenlabs"
    title = "ElevenLabs Scribe"
    Settings = ScribeSettings

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        hints = [
            hint
            for hint in request.hints
            if len(hint) <= LONGEST_KEYTERM and len(hint.split()) <= MOST_WORDS_OF_A_KEYTERM
        ]
        language = _get_language(get_transcribed_language(request.language))
        params = [
            ("model_id", request.model or self.settings.model),
            ("audio_format", "ulaw_8000"),
            ("commit_strategy", "manual"),
            ("include_timestamps", "true"),
            *([("language_code", language)] if language is not None else []),
            *(("keyterms", hint) for hint in hints[:MOST_KEYTERMS]),
            *([("enable_logging", "false")] if self.settings.no_retention else []),
        ]
        path = "/v1/speech-to-text/realtime"
        socket = await self._connection.begin_session(path, params=params, check_start=self._check_start)
        return ScribeStream(self._connection, socket)

    def _check_start(self, first: aiohttp.WSMessage) -> None:
        if first.type is not aiohttp.WSMsgType.TEXT:
            raise self._connection.closed_error(first)
        message = _Message.model_validate_json(first.data)
        if message.error is not None:
            raise _error_of(self._connection, message)
