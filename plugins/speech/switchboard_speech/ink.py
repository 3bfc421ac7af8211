"""Cartesia's Ink, which transcribes live.

Messages: https://docs.cartesia.ai/api-reference/stt/stt, and `STTManualFinalizeWebsocketResponse` of
github.com/cartesia-ai/cartesia-python, August 2026. Keyterms: https://docs.cartesia.ai/use-the-api/stt/keyterms.
"""

from collections.abc import Sequence
from typing import Final

import aiohttp
from pydantic import BaseModel, Field, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    Word,
)

from switchboard_speech.cartesia import create_cartesia_connection
from switchboard_speech.connection import (
    ConnectedProvider,
    SpeechVendorSettings,
    VendorConnection,
    VendorUrl,
    WordTimes,
)
from switchboard_speech.languages import get_transcribed_language
from switchboard_speech.streams import SILENCE, SocketStream

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


class _Word(BaseModel):
    word: str
    start: float
    end: float


class _Columns(BaseModel):
    """Words in the form of a voice's times, which Cartesia's SDK has here too (`shared/word_timestamps.py`)."""

    words: list[str]
    start: list[float]
    end: list[float]


class _Message(BaseModel):
    """A chunk of the words since the last final chunk, or another message, of which an error has a status.

    Each entry of `words` is a word with its times (https://docs.cartesia.ai/use-the-api/stt/word-timestamps), or has
    several of them in columns.
    """

    type: str
    text: str = ""
    is_final: bool = False
    words: WordTimes[_Word | _Columns] = []
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
        self._words: list[_Word] = []

    def handle_message(self, message: str) -> None:
        said = _Message.model_validate_json(message)
        if said.type == "error":
            raise self._connection.status_error(said.status_code or 500, message)
        if said.type == "transcript":
            self._handle_chunk(said)
        elif said.type == "flush_done" and (self._text or self.is_finalizing):
            self._add_utterance(finalized=self.is_finalizing)

    def confirm_end(self) -> None:
        self._add_utterance(finalized=True)

    def _handle_chunk(self, said: _Message) -> None:
        text = self._text + said.text
        if said.is_final:
            self._text = text
            self._words += [word for entry in said.words for word in _list_words(entry)]
        if said.text.strip():
            self.add_transcript(Transcript(text.strip(), is_final=False))

    def _add_utterance(self, *, finalized: bool) -> None:
        text, words, self._text, self._words = self._text.strip(), self._words, "", []
        self.add_transcript(Transcript(text, is_final=True, finalized=finalized, words=_time_words(words)))


def _list_words(entry: _Word | _Columns) -> list[_Word]:
    if isinstance(entry, _Word):
        return [entry]
    return [
        _Word(word=word, start=start, end=end)
        for word, start, end in zip(entry.words, entry.start, entry.end, strict=False)
    ]


def _time_words(words: Sequence[_Word]) -> tuple[Word, ...]:
    """Return the words, timed from the start of the first one."""
    since = words[0].start if words else 0.0
    return tuple(
        Word(word.word.strip(), round((word.start - since) * 1000), round((word.end - since) * 1000)) for word in words
    )


class CartesiaSpeechToText(ConnectedProvider[InkSettings], SpeechToTextProvider[InkSettings]):
    """Ink with the phone's mu-law audio; the engine decides when an utterance is over."""

    name = "cartesia"
    title = "Cartesia Ink"
    Settings = InkSettings
    audio_format = PHONE_MULAW

    def connection(self, settings: InkSettings) -> VendorConnection:
        return create_cartesia_connection(self.title, settings)

    async def check(self) -> None:
        """Open a stream without audio, which costs nothing."""
        await (await self.transcribe(TranscriptionRequest())).close()

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        language = get_transcribed_language(request.language)
        model = request.model or self.settings.model or (DETECTING if language in DETECTED_LANGUAGES else WHISPER)
        detects = model.startswith(DETECTING)
        params = [
            ("model", model),
            ("encoding", "pcm_mulaw"),
            ("sample_rate", "8000"),
            *([("language", language)] if language is not None and not detects else []),
            *(("keyterm", hint) for hint in _select_keyterms(request.hints) if detects),
        ]
        return InkStream(self._connection, await self._connection.socket("/stt/websocket", params=params))


def _select_keyterms(hints: Sequence[str]) -> Sequence[str]:
    """Return the first phrases that are together within Cartesia's limits."""
    length, selected = 0, list[str]()
    for hint in hints[:MOST_KEYTERMS]:
        if (length := length + len(hint)) > LONGEST_KEYTERMS:
            break
        selected.append(hint)
    return selected
