"""ElevenLabs' Scribe, which transcribes live.

Messages: https://elevenlabs.io/docs/api-reference/speech-to-text/v-1-speech-to-text-realtime. Limits of keyterms:
https://elevenlabs.io/docs/eleven-api/guides/how-to/speech-to-text/batch/keyterm-prompting. Languages:
https://elevenlabs.io/docs/overview/capabilities/speech-to-text.
"""

import json
import math
from base64 import b64encode
from typing import Final

import aiohttp
from pydantic import BaseModel, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    Word,
)

from switchboard_speech.connection import (
    CONNECT_SECONDS,
    ConnectedProvider,
    DefaultModel,
    SpeechVendorSettings,
    VendorConnection,
    VendorUrl,
    WordTimes,
    parse_vendor_data,
)
from switchboard_speech.elevenlabs import NoRetention, create_elevenlabs_connection, get_elevenlabs_language
from switchboard_speech.languages import get_transcribed_language
from switchboard_speech.streams import SILENCE, ChunkedStream

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
                self.add_transcript(_build_transcript(said, finalized=self.is_finalizing))
        elif said.message_type == "commit_throttled" and self.is_finalizing:
            self.confirm_end()
        elif said.error is not None and said.message_type not in NOTICES:
            raise _error_of(self._connection, said)


def _build_transcript(said: _Message, *, finalized: bool) -> Transcript:
    """Return the final transcript, with words timed from the first one's start."""
    timed = [
        (word.text, word.start, word.end)
        for word in said.words
        if word.type == "word" and word.start is not None and word.end is not None
    ]
    since = timed[0][1] if timed else 0.0
    words = tuple(Word(text, round((start - since) * 1000), round((end - since) * 1000)) for text, start, end in timed)
    logarithms = [word.logprob for word in said.words if word.type == "word" and word.logprob is not None]
    confidence = math.exp(min(0.0, sum(logarithms) / len(logarithms))) if logarithms else None
    return Transcript(said.text, is_final=True, finalized=finalized, confidence=confidence, words=words)


class ElevenLabsSpeechToText(ConnectedProvider[ScribeSettings], SpeechToTextProvider[ScribeSettings]):
    """Scribe with the phone's mu-law audio; the engine decides when words are committed."""

    name = "elevenlabs"
    title = "ElevenLabs Scribe"
    Settings = ScribeSettings
    audio_format = PHONE_MULAW

    def connection(self, settings: ScribeSettings) -> VendorConnection:
        return create_elevenlabs_connection(self.title, settings)

    async def check(self) -> None:
        """Begin a session without audio, which costs nothing: a key for transcription alone can do nothing else."""
        await (await self._begin(TranscriptionRequest())).close()

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return ScribeStream(self._connection, await self._begin(request))

    async def _begin(self, request: TranscriptionRequest) -> aiohttp.ClientWebSocketResponse:
        """Open a socket on which the session has started: the key may be validated only after the handshake."""
        hints = [
            hint
            for hint in request.hints
            if len(hint) <= LONGEST_KEYTERM and len(hint.split()) <= MOST_WORDS_OF_A_KEYTERM
        ]
        language = get_elevenlabs_language(get_transcribed_language(request.language))
        params = [
            ("model_id", request.model or self.settings.model),
            ("audio_format", "ulaw_8000"),
            ("commit_strategy", "manual"),
            ("include_timestamps", "true"),
            *([("language_code", language)] if language is not None else []),
            *(("keyterms", hint) for hint in hints[:MOST_KEYTERMS]),
            *([("enable_logging", "false")] if self.settings.no_retention else []),
        ]
        return await self._connection.begin_session(
            "/v1/speech-to-text/realtime", params=params, wait_for_start=self._wait_for_start
        )

    async def _wait_for_start(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        received = await self._connection.receive(socket, CONNECT_SECONDS)
        if received.type is not aiohttp.WSMsgType.TEXT:
            raise self._connection.closed_error(received)
        with parse_vendor_data(self.title):
            message = _Message.model_validate_json(received.data)
        if message.error is not None:
            raise _error_of(self._connection, message)
