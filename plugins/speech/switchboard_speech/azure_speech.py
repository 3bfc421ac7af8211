"""Azure Speech: its voices, and its live transcription.

https://learn.microsoft.com/en-us/azure/ai-services/speech-service/rest-text-to-speech

The messages of the WebSocket, Azure's Universal Speech Protocol, are described by Microsoft's JavaScript SDK
(`WebsocketMessageFormatter`, `SpeechConnectionMessage`, `ServiceRecognizerBase`, `SpeechContext`, and
`DetailedSpeechPhrase` of github.com/microsoft/cognitive-services-speech-sdk-js, July 2026). `X-ConnectionId`, a unique
id without which the service may refuse a connection with 400:
https://docs.microsoft.com/azure/cognitive-services/speech/api-reference-rest/websocketprotocol.
Phrases that are expected: https://learn.microsoft.com/azure/ai-services/speech-service/improve-accuracy-phrase-list.
"""

import json
import re
import struct
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Annotated, ClassVar, Final, TypeVar
from uuid import uuid4

import aiohttp
from pydantic import BaseModel, Field, HttpUrl, RootModel, SecretStr
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderSettings,
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

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    WordTimes,
)
from switchboard_speech.languages import get_locale
from switchboard_speech.streams import ChunkedStream, StreamingTranscriber

SLOWEST, FASTEST = 0.5, 2.0
MULTILINGUAL: Final = "Multilingual"
"""Part of the names of voices that speak languages besides their own."""
NATIONAL_CLOUDS: Final = {"china": "azure.cn", "usgov": "azure.us"}
NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Region = Annotated[str, Field(pattern=r"^[a-z0-9]+$", description="Region of the Speech resource, such as westeurope.")]
ResourceUrl = Annotated[HttpUrl | None, Field(description="Address of a container, instead of the region's.")]


class AzureSpeechSettings(ProviderSettings):
    """A Speech resource: its key and region."""

    api_key: SecretStr = Field(description="A key of the Speech resource.")
    region: Region
    base_url: ResourceUrl = None


AzureSettingsT = TypeVar("AzureSettingsT", bound=AzureSpeechSettings)


class AzureVoiceSettings(TextToSpeechSettings, AzureSpeechSettings):
    """Settings of Azure's voices."""

    voice_id: DefaultVoice = "en-US-AvaMultilingualNeural"


class _Reason(BaseModel):
    code: str | int | None = None
    message: str


class _Failure(BaseModel):
    error: _Reason


class _Voice(BaseModel):
    short_name: str = Field(alias="ShortName")
    display_name: str = Field(alias="DisplayName")
    locale: str = Field(alias="Locale")
    gender: str = Field("", alias="Gender")


class _Voices(RootModel[VendorList[_Voice]]):
    pass


def _read_fault(body: str) -> VendorFault:
    error = _Failure.model_validate_json(body).error
    return VendorFault(str(error.code) if error.code is not None else None, error.message)


class _Azure(ConnectedProvider[AzureSettingsT]):
    """A provider with a connection to the service `stt` or `tts` of a region."""

    service: ClassVar[str]

    def connection(self, settings: AzureSettingsT) -> VendorConnection:
        region = settings.region
        cloud = next((host for name, host in NATIONAL_CLOUDS.items() if region.startswith(name)), "microsoft.com")
        base_url = settings.base_url or HttpUrl(f"https://{region}.{self.service}.speech.{cloud}")
        vendor = SpeechVendorSettings(api_key=settings.api_key, base_url=base_url)
        headers = {"Ocp-Apim-Subscription-Key": settings.api_key.get_secret_value()}
        return VendorConnection(self.title, vendor, headers, _read_fault)


class AzureTextToSpeech(_Azure[AzureVoiceSettings], TextToSpeechProvider[AzureVoiceSettings]):
    """Azure's neural voices, streamed as mu-law.

    One HTTP request per sentence. Word times are sent over the WebSocket alone.
    """

    name = "azure_speech"
    title = "Azure Speech"
    Settings = AzureVoiceSettings
    service = "tts"
    audio_format = PHONE_MULAW

    async def check(self) -> None:
        await self._connection.get("/cognitiveservices/voices/list", _Voices)

    def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        headers = {
            "Content-Type": "application/ssml+xml",
            "X-Microsoft-OutputFormat": "raw-8khz-8bit-mono-mulaw",
            "User-Agent": "Switchboard",
        }
        voice = request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id
        ssml = _build_ssml(request, voice)
        return self._connection.stream_audio("/cognitiveservices/v1", text=ssml, headers=headers)

    async def list_voices(self) -> Sequence[Voice]:
        voices = (await self._connection.get("/cognitiveservices/voices/list", _Voices)).root
        return [Voice(voice.short_name, voice.display_name, voice.locale, voice.gender.lower()) for voice in voices]


def _build_ssml(request: SpeechRequest, voice: str) -> str:
    """Return the request of a sentence.

    https://learn.microsoft.com/azure/ai-services/speech-service/speech-synthesis-markup
    """
    spoken, language = escape(NOT_IN_XML.sub("", request.text)), get_locale(request.language)
    if request.speed != 1.0:
        spoken = f'<prosody rate="{min(FASTEST, max(SLOWEST, request.speed))}">{spoken}</prosody>'
    if language is not None and MULTILINGUAL in voice:
        spoken = f'<lang xml:lang="{escape(language)}">{spoken}</lang>'
    return (
        '<speak version="1.0" xmlns="http://www.w3.org/2001/10/synthesis" xml:lang="en-US">'
        f'<voice name="{escape(voice)}">{spoken}</voice></speak>'
    )


LINE_END: Final = "\r\n"
MULAW_WAVE: Final = struct.pack(
    "<4sI4s4sIHHIIHH4sI", b"RIFF", 0, b"WAVE", b"fmt ", 16, 7, 1, 8000, 8000, 1, 8, b"data", 0
)
"""The header of an endless WAVE file of mu-law at 8 kHz."""


def _build_text_message(path: str, request_id: str, body: object) -> str:
    """Return a message with a JSON body."""
    headers = _build_headers(path, request_id, "application/json")
    return headers + LINE_END + json.dumps(body)


def _build_audio_message(request_id: str, audio: bytes, content_type: str | None = None) -> bytes:
    """Return a message with audio; an empty one ends the audio of the request."""
    headers = _build_headers("audio", request_id, content_type).encode()
    return struct.pack(">H", len(headers)) + headers + audio


def _parse_message(message: str) -> tuple[str, str, str]:
    """Return a message's path in lower case, the id of its request, and its JSON text."""
    head, _, body = message.partition(LINE_END * 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head.splitlines())
    }
    return headers.get("path", "").lower(), headers.get("x-requestid", "").lower(), body


def _build_headers(path: str, request_id: str, content_type: str | None) -> str:
    headers = {
        "Path": path,
        "X-RequestId": request_id,
        "X-Timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **({"Content-Type": content_type} if content_type is not None else {}),
    }
    return "".join(f"{name}: {value}{LINE_END}" for name, value in headers.items())


PATH: Final = "/speech/recognition/conversation/cognitiveservices/v1"
HEARTBEAT_SECONDS: Final = 30.0
TICKS_A_MILLISECOND: Final = 10_000
MOST_PHRASES: Final = 500
FINAL_STATUSES: Final = frozenset({"BadRequest", "Forbidden"})
"""Failures that a retry does not change."""
FAILURES: Final = FINAL_STATUSES | {"Error", "TooManyRequests"}
CONFIG: Final = {
    "context": {
        "system": {"name": "Switchboard", "version": "1", "build": "Python", "lang": "Python"},
        "os": {"platform": "Linux", "name": "Linux", "version": "1"},
        "audio": {"source": {"type": "Stream", "samplerate": 8000, "bitspersample": 8, "channelcount": 1}},
    },
    "recognition": "conversation",
}


class AzureTranscriptionSettings(AzureSpeechSettings):
    """Settings of Azure's transcription."""

    language: str = Field(
        "en-US", description="Locale for agents whose callers switch languages (`mul`), which Azure is not asked to do."
    )


class _Word(BaseModel):
    word: str = Field(alias="Word")
    offset: int = Field(alias="Offset")
    duration: int = Field(alias="Duration")


class _Alternative(BaseModel):
    confidence: float | None = Field(None, alias="Confidence")
    display: str = Field("", alias="Display")
    words: WordTimes[_Word] = Field([], alias="Words")


class _Phrase(BaseModel):
    """Final words; times are in ticks of 100 nanoseconds from the start of the request."""

    status: str = Field(alias="RecognitionStatus")
    offset: int = Field(0, alias="Offset")
    alternatives: VendorList[_Alternative] = Field([], alias="NBest")


class _Hypothesis(BaseModel):
    text: str = Field(alias="Text")


class AzureStream(ChunkedStream):
    """Stream in which each utterance is a request of its own.

    Azure has no message that finalizes words, but finalizes them where the audio of a request ends.
    """

    SHORTEST, LONGEST = 800, 8000

    def __init__(
        self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse, context: dict[str, object]
    ) -> None:
        super().__init__(connection, socket)
        self._context = context
        self._request_id: str | None = None
        self._ended_id: str | None = None

    def encode(self, audio: bytes) -> bytes:
        return _build_audio_message(self._request_id or "", audio)

    async def send(self, audio: bytes) -> None:
        if self._request_id is None:
            self._request_id = uuid4().hex
            await self._send_message(_build_text_message("speech.context", self._request_id, self._context))
            await self._send_message(_build_audio_message(self._request_id, MULAW_WAVE, "audio/x-wav"))
        await super().send(audio)

    def _handle_phrase(self, phrase: _Phrase) -> None:
        if phrase.status in FAILURES:
            retryable = phrase.status not in FINAL_STATUSES
            message = f"the transcription failed ({phrase.status})"
            raise self._connection.error(message, code=phrase.status, retryable=retryable)
        best = next(iter(phrase.alternatives), None)
        if best is not None and best.display:
            times = [(word.word, word.offset - phrase.offset, word.duration) for word in best.words]
            words = tuple(
                Word(text, round(start / TICKS_A_MILLISECOND), round((start + duration) / TICKS_A_MILLISECOND))
                for text, start, duration in times
            )
            self.add_transcript(Transcript(best.display, is_final=True, confidence=best.confidence, words=words))

    async def finalize(self) -> None:
        await super().finalize()
        if self._request_id is None:
            self.confirm_end()
            return
        await self.send_rest()
        self._ended_id, self._request_id = self._request_id, None
        await self._send_message(_build_audio_message(self._ended_id, b""))

    def handle_message(self, message: str) -> None:
        path, request_id, body = _parse_message(message)
        if path in ("speech.hypothesis", "speech.fragment"):
            self.add_transcript(Transcript(_Hypothesis.model_validate_json(body).text, is_final=False))
        elif path == "speech.phrase":
            self._handle_phrase(_Phrase.model_validate_json(body))
        elif path == "turn.end" and request_id == self._request_id:
            self._request_id = None  # Azure ended the request itself; the next audio begins another one.
        elif path == "turn.end" and request_id == self._ended_id and self.is_finalizing:
            self.confirm_end()


class AzureSpeechToText(_Azure[AzureTranscriptionSettings], StreamingTranscriber[AzureTranscriptionSettings]):
    """Azure's live transcription of the phone's mu-law audio."""

    name = "azure_speech"
    title = "Azure Speech"
    Settings = AzureTranscriptionSettings
    service = "stt"

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        params = [
            ("language", get_locale(request.language) or self.settings.language),
            ("format", "detailed"),
            ("wordLevelTimestamps", "true"),
            *([("cid", request.model)] if request.model else []),
        ]
        socket = await self._connection.socket(
            PATH, params=params, headers={"X-ConnectionId": uuid4().hex}, heartbeat_seconds=HEARTBEAT_SECONDS
        )
        context: dict[str, object] = {
            "phraseDetection": {"mode": "Conversation"},
            "phraseOutput": {"format": "Detailed", "detailed": {"options": ["WordTimings"]}},
        }
        if phrases := [{"text": hint} for hint in request.hints[:MOST_PHRASES]]:
            context["dgi"] = {"groups": [{"type": "Generic", "items": phrases}]}
        stream = AzureStream(self._connection, socket, context)
        await socket.send_str(_build_text_message("speech.config", uuid4().hex, CONFIG))
        return stream
