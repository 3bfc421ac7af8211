"""Azure Speech's live transcription.

The WebSocket's messages are described by Microsoft's JavaScript SDK (`ServiceRecognizerBase`, `SpeechContext`, and
`DetailedSpeechPhrase` of github.com/microsoft/cognitive-services-speech-sdk-js, July 2026). `X-ConnectionId`, a unique
id without which the service may refuse a connection with 400:
https://docs.microsoft.com/azure/cognitive-services/speech/api-reference-rest/websocketprotocol.
Phrases that are expected: https://learn.microsoft.com/azure/ai-services/speech-service/improve-accuracy-phrase-list.
"""

from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import aiohttp
from pydantic import BaseModel, Field
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    Word,
)

from switchboard_speech.azure_speech import AzureSpeechSettings, create_azure_connection
from switchboard_speech.connection import (
    ConnectedProvider,
    VendorConnection,
    VendorList,
    WordTimes,
)
from switchboard_speech.languages import get_locale
from switchboard_speech.streams import ChunkedStream
from switchboard_speech.usp import (
    MULAW_WAVE,
    build_audio_message,
    build_text_message,
    parse_message,
)

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
        return build_audio_message(self._request_id or "", audio)

    async def send(self, audio: bytes) -> None:
        if self._request_id is None:
            self._request_id = uuid4().hex
            await self._send_message(build_text_message("speech.context", self._request_id, self._context))
            await self._send_message(build_audio_message(self._request_id, MULAW_WAVE, "audio/x-wav"))
        await super().send(audio)

    async def finalize(self) -> None:
        await super().finalize()
        if self._request_id is None:
            self.confirm_end()
            return
        await self.send_rest()
        self._ended_id, self._request_id = self._request_id, None
        await self._send_message(build_audio_message(self._ended_id, b""))

    def handle_message(self, message: str) -> None:
        path, request_id, body = parse_message(message)
        if path in ("speech.hypothesis", "speech.fragment"):
            self.add_transcript(Transcript(_Hypothesis.model_validate_json(body).text, is_final=False))
        elif path == "speech.phrase":
            self._handle_phrase(_Phrase.model_validate_json(body))
        elif path == "turn.end" and request_id == self._request_id:
            self._request_id = None  # Azure ended the request itself; the next audio begins another one.
        elif path == "turn.end" and request_id == self._ended_id and self.is_finalizing:
            self.confirm_end()

    def _handle_phrase(self, phrase: _Phrase) -> None:
        if phrase.status in FAILURES:
            raise self._connection.error(
                f"the transcription failed ({phrase.status})",
                code=phrase.status,
                retryable=phrase.status not in FINAL_STATUSES,
            )
        best = next(iter(phrase.alternatives), None)
        if best is not None and best.display:
            words = tuple(_to_word(word, phrase.offset) for word in best.words)
            self.add_transcript(Transcript(best.display, is_final=True, confidence=best.confidence, words=words))


def _to_word(word: _Word, since: int) -> Word:
    start = word.offset - since
    return Word(word.word, round(start / TICKS_A_MILLISECOND), round((start + word.duration) / TICKS_A_MILLISECOND))


class AzureSpeechToText(
    ConnectedProvider[AzureTranscriptionSettings], SpeechToTextProvider[AzureTranscriptionSettings]
):
    """Azure's live transcription of the phone's mu-law audio."""

    name = "azure_speech"
    title = "Azure Speech"
    Settings = AzureTranscriptionSettings
    audio_format = PHONE_MULAW

    def connection(self, settings: AzureTranscriptionSettings) -> VendorConnection:
        return create_azure_connection(self.title, settings, "stt")

    async def check(self) -> None:
        """Open a stream without audio, which costs nothing."""
        await (await self.transcribe(TranscriptionRequest())).close()

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
        stream = AzureStream(self._connection, socket, _build_context(request.hints[:MOST_PHRASES]))
        await socket.send_str(build_text_message("speech.config", uuid4().hex, CONFIG))
        return stream


def _build_context(hints: Sequence[str]) -> dict[str, object]:
    context: dict[str, object] = {
        "phraseDetection": {"mode": "Conversation"},
        "phraseOutput": {"format": "Detailed", "detailed": {"options": ["WordTimings"]}},
    }
    if hints:
        context["dgi"] = {"groups": [{"type": "Generic", "items": [{"text": hint} for hint in hints]}]}
    return context
