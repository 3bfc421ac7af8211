"""ElevenLabs' voices (https://elevenlabs.io/docs/api-reference/text-to-speech).

Each sentence is one request to the streaming endpoint with timestamps. The WebSocket for partial text has no advantage:
sentences are complete, a reused connection needs no handshake, and a refusal has a status instead of a closed socket.
"""

from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import BaseModel, Field, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Voice,
    Word,
)
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultModel,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    WordTimes,
    parse_vendor_data,
)
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


class _Voices(BaseModel):
    voices: VendorList[_Voice]
    has_more: bool = False
    next_page_token: str | None = None


def read_elevenlabs_fault(body: str) -> VendorFault:
    """Read a fault. Raises `ValueError`."""
    detail = _Failure.model_validate_json(body).detail
    if isinstance(detail, str):
        return VendorFault(None, detail)
    if isinstance(detail, _Reason):
        return VendorFault(detail.status or detail.code, detail.message)
    return VendorFault(None, "; ".join(f"{'.'.join(map(str, invalid.loc))}: {invalid.msg}" for invalid in detail))


def create_elevenlabs_connection(title: str, settings: SpeechVendorSettings) -> VendorConnection:
    """Create the connection of a provider to ElevenLabs."""
    return VendorConnection(title, settings, {"xi-api-key": settings.api_key.get_secret_value()}, read_elevenlabs_fault)


def get_elevenlabs_language(language: str | None) -> str | None:
    """Return ElevenLabs' code of a base language."""
    usual, own = FILIPINO
    return own if language == usual else language


class ElevenLabsTextToSpeech(ConnectedProvider[ElevenLabsSettings], TextToSpeechProvider[ElevenLabsSettings]):
    """Mu-law from the vendor, with the time of each word."""

    name = "elevenlabs"
    title = "ElevenLabs"
    Settings = ElevenLabsSettings
    audio_format = PHONE_MULAW

    def connection(self, settings: ElevenLabsSettings) -> VendorConnection:
        return create_elevenlabs_connection(self.title, settings)

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
                        audio, words = _read(_Chunk.model_validate_json(line), spelling, timeline.seconds)
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
                return [_voice(voice, voice.labels or {}) for voice in found]
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
        language = get_elevenlabs_language(get_single_language(request.language))
        if language is not None and model.endswith(ENFORCES_LANGUAGE):
            body["language_code"] = language
        return body


def _read(chunk: _Chunk, spelling: WordAssembler, begun: float) -> tuple[bytes, list[Word]]:
    audio, timing = b64decode(chunk.audio_base64), chunk.alignment
    if timing is None:
        return audio, []
    return audio, spelling.add(
        timing.characters, timing.character_start_times_seconds, timing.character_end_times_seconds, begun=begun
    )


def _voice(voice: _Voice, labels: Mapping[str, str]) -> Voice:
    return Voice(voice.voice_id, voice.name or voice.voice_id, labels.get("language", ""), labels.get("gender"))
