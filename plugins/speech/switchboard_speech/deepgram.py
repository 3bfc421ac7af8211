"""Deepgram: live transcription by Nova and Flux, and voices by Aura (https://developers.deepgram.com/reference).

Flux transcribes and judges turns. Its messages: https://developers.deepgram.com/reference/speech-to-text/listen-flux.
The order of events: https://developers.deepgram.com/docs/flux/state.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, HttpUrl, StringConstraints, model_validator
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Transcript,
    TranscriptionRequest,
    TurnState,
    Voice,
)
from switchboard.plugin_sdk.languages import MULTIPLE_LANGUAGES, get_base_language

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultModel,
    DefaultVoice,
    Params,
    SettingsT,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    WordTimes,
)
from switchboard_speech.languages import is_cantonese
from switchboard_speech.streams import GRACE_SECONDS, SocketStream, TurnStream, time_words

MOST_KEYTERMS: Final = 50
LONGEST_KEYTERM: Final = 50
"""Deepgram allows 500 tokens of keyterms in total, and recommends 20 to 50 terms."""
REGIONS: Final = frozenset((
    "da-DK", "de-CH", "en-AU", "en-GB", "en-IN", "en-NZ", "en-US", "es-419", "fr-CA", "ko-KR", "nl-BE", "pt-BR",
    "pt-PT", "sv-SE", "th-TH", "zh-CN", "zh-HK", "zh-Hans", "zh-Hant", "zh-TW",
))  # fmt: skip
"""Language regions that Deepgram supports (https://developers.deepgram.com/docs/models-languages-overview); it refuses
streams in others.
"""
CANTONESE: Final = "zh-HK"
"""Deepgram's code (https://developers.deepgram.com/changelog/2026/3/17)."""
NEARLY_ALL_SECONDS: Final = 0.05
SLOWEST, FASTEST = 0.7, 1.5
FLUX: Final = "flux-"
FLUX_MULTILINGUAL: Final = "flux-general-multi"
FLUX_LANGUAGES: Final = frozenset({"de", "en", "es", "fr", "hi", "it", "ja", "nl", "pt", "ru"})
"""Language hints of `flux-general-multi` (https://developers.deepgram.com/docs/flux/language-prompting)."""
SHORTEST_TIMEOUT_MS, LONGEST_TIMEOUT_MS = 500, 10_000
FLUX_HEARTBEAT_SECONDS: Final = 30.0
"""Flux has no KeepAlive; it closes a connection without audio or pings after 60 seconds
(https://github.com/deepgram/deepgram-python-sdk/issues/618).
"""
FLUX_STATES: Final[dict[str, TurnState]] = {
    "StartOfTurn": "ongoing",
    "TurnResumed": "ongoing",
    "EagerEndOfTurn": "eager_end",
    "EndOfTurn": "end",
}
NO_RETENTION: Final = (("mip_opt_out", "true"),)
FLUX_REDACTIONS: Final = frozenset({"numbers", "aggressive_numbers"})
"""Kinds that Flux accepts (https://developers.deepgram.com/docs/redaction and changelog, 24 June 2026)."""


# https://developers.deepgram.com/trust-security/your-data
NoRetention = Annotated[
    bool, Field(description="Requests opt out of Deepgram's Model Improvement Program, so that they are not retained.")
]


class DeepgramSettings(SpeechVendorSettings):
    """Settings of Deepgram's transcription. Models whose names begin with `flux-` judge turns themselves."""

    base_url: VendorUrl = HttpUrl("https://api.deepgram.com")
    model: DefaultModel = "nova-3"
    endpointing_ms: int = Field(
        default=300, ge=10, le=5000, description="Silence in milliseconds after which Nova finalizes words by itself."
    )
    smart_format: bool = Field(False, description="Deepgram formats dates, times, and numbers in transcripts.")
    eot_threshold: float = Field(
        default=0.7, ge=0.5, le=0.9, description="Confidence from which Flux takes a turn for complete."
    )
    eager_eot_threshold: float | None = Field(
        default=0.5,
        ge=0.3,
        le=0.9,
        description="Confidence from which Flux takes a turn for probably complete, to ask the model; null: never.",
    )
    no_retention: NoRetention = False
    redact: list[Annotated[str, StringConstraints(pattern="^[a-z_]+$")]] = Field(
        default=[],
        description="Kinds that Deepgram redacts: `numbers`, `aggressive_numbers`, and for English with Nova `pci`, "
        "`pii`, `phi`, or an entity type.",
    )

    @model_validator(mode="after")
    def _check_redaction(self) -> Self:
        if self.model.startswith(FLUX) and (unknown := set(self.redact) - FLUX_REDACTIONS):
            raise ValueError(f"{', '.join(sorted(unknown))}: Flux redacts {', '.join(sorted(FLUX_REDACTIONS))} only")
        return self

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        if self.eager_eot_threshold is not None and self.eager_eot_threshold > self.eot_threshold:
            raise ValueError("eager_eot_threshold must not be greater than eot_threshold")
        return self


class DeepgramVoiceSettings(TextToSpeechSettings, SpeechVendorSettings):
    """Settings of Deepgram's voices."""

    base_url: VendorUrl = HttpUrl("https://api.deepgram.com")
    voice_id: DefaultVoice = "aura-2-thalia-en"
    no_retention: NoRetention = False


class _Projects(BaseModel):
    projects: VendorList[object]


class _Envelope(BaseModel):
    type: str = ""


class _Word(BaseModel):
    word: str
    punctuated_word: str | None = None
    start: float
    end: float


class _Alternative(BaseModel):
    transcript: str = ""
    confidence: float | None = None
    words: WordTimes[_Word] = []


class _Channel(BaseModel):
    alternatives: VendorList[_Alternative] = []


class _Results(BaseModel):
    start: float
    duration: float
    is_final: bool = False
    from_finalize: bool = False
    channel: _Channel


class _Failure(BaseModel):
    """Deepgram's three error formats."""

    err_code: str | None = None
    err_msg: str | None = None
    category: str | None = None
    message: str | None = None
    details: str | None = None
    variant: str | None = None
    description: str | None = None


def _read_fault(body: str) -> VendorFault:
    failure = _Failure.model_validate_json(body)
    message = ": ".join(filter(None, (failure.err_msg or failure.message or failure.description, failure.details)))
    return VendorFault(failure.err_code or failure.category or failure.variant, message or body)


class _Deepgram(ConnectedProvider[SettingsT]):
    def connection(self, settings: SettingsT) -> VendorConnection:
        return VendorConnection(
            self.title, settings, {"Authorization": f"Token {settings.api_key.get_secret_value()}"}, _read_fault
        )

    async def check(self) -> None:
        await self._connection.get("/v1/projects", _Projects)


class _Stream(SocketStream):
    KEEP_ALIVE = json.dumps({"type": "KeepAlive"})
    FINALIZE = json.dumps({"type": "Finalize"})
    CLOSE = json.dumps({"type": "CloseStream"})
    _final_until = 0.0

    async def finalize(self) -> None:
        # Deepgram does not confirm if it has nothing left to transcribe.
        if self._is_complete():
            self.add_transcript(Transcript("", is_final=True, finalized=True))
        else:
            await super().finalize()

    def handle_message(self, message: str) -> None:
        kind = _Envelope.model_validate_json(message).type
        if kind == "Error":
            fault = _read_fault(message)
            raise self._connection.error(fault.message, code=fault.code)
        if kind != "Results":
            return
        results = _Results.model_validate_json(message)
        best = next(iter(results.channel.alternatives), _Alternative())
        if results.is_final:
            self._final_until = results.start + results.duration
        # `from_finalize` is not guaranteed; a final result that covers all sent audio means the same.
        finalized = self.is_finalizing and results.is_final and (results.from_finalize or self._is_complete())
        if best.transcript or finalized:
            times = [(word.punctuated_word or word.word, word.start, word.end) for word in best.words]
            words = time_words(times, results.start)
            self.add_transcript(Transcript(best.transcript, results.is_final, finalized, best.confidence, words))

    def _is_complete(self) -> bool:
        return self._final_until >= self.sent_seconds - NEARLY_ALL_SECONDS


class _FluxWord(BaseModel):
    word: str


class _TurnInfo(BaseModel):
    """State of a turn, with all its words; the audio until `audio_window_end` seconds is transcribed."""

    type: Literal["TurnInfo"]
    event: str
    turn_index: int
    audio_window_end: float
    transcript: str
    words: WordTimes[_FluxWord]
    end_of_turn_confidence: float


class FluxStream(TurnStream):
    """One call's transcription by Flux, in messages of at least 80 milliseconds, as Deepgram recommends.

    The judgment comes by itself. Flux transcribes the audio before a pause within the next 0.25 seconds of audio.
    """

    CLOSE = json.dumps({"type": "CloseStream"})
    SHORTEST, LONGEST = 640, 8000

    async def finalize(self) -> None:
        await self.await_judgment(GRACE_SECONDS)

    def is_judged(self) -> bool:
        return self.heard_until >= self.finalized_at - NEARLY_ALL_SECONDS or super().is_judged()

    def handle_message(self, message: str) -> None:
        kind = _Envelope.model_validate_json(message).type
        if kind == "Error":
            error = _FluxError.model_validate_json(message)
            raise self._connection.error(error.description, code=error.code)
        if kind != "TurnInfo":
            return
        info = _TurnInfo.model_validate_json(message)
        self.heard_until = info.audio_window_end
        words = [word.word for word in info.words]
        has_changed = self.turn.update(
            info.turn_index, info.transcript, words, FLUX_STATES.get(info.event), info.end_of_turn_confidence
        )
        if has_changed or (self.is_finalizing and self.is_judged()):
            self.handle_turn()


class _FluxError(BaseModel):
    """An error that ends the stream."""

    code: str
    description: str


class DeepgramSpeechToText(_Deepgram[DeepgramSettings], SpeechToTextProvider[DeepgramSettings]):
    """Live transcription of the phone's mu-law audio by Nova or Flux, with the agent's phrases as keyterms."""

    name = "deepgram"
    title = "Deepgram"
    Settings = DeepgramSettings
    audio_format = PHONE_MULAW

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        model = request.model or self.settings.model
        judges = model.startswith(FLUX)
        hints = [hint for hint in request.hints if len(hint) <= LONGEST_KEYTERM][:MOST_KEYTERMS]
        # Keyterms exist since Nova-3; earlier models have keywords.
        parameter = "keyterm" if judges or model.startswith("nova-3") else "keywords"
        params = [
            ("model", model),
            ("encoding", "mulaw"),
            ("sample_rate", "8000"),
            *(self._list_flux_params(model, request) if judges else self._list_nova_params(request)),
            *((parameter, hint) for hint in hints),
            *(("redact", kind) for kind in self.settings.redact),
            *(NO_RETENTION if self.settings.no_retention else ()),
        ]
        if not judges:
            return _Stream(self._connection, await self._connection.socket("/v1/listen", params=params))
        socket = await self._connection.socket("/v2/listen", params=params, heartbeat_seconds=FLUX_HEARTBEAT_SECONDS)
        return FluxStream(self._connection, socket, request.max_silence_seconds or GRACE_SECONDS)

    def _list_flux_params(self, model: str, request: TranscriptionRequest) -> Params:
        params = [("eot_threshold", str(self.settings.eot_threshold))]
        if request.max_silence_seconds is not None:
            if self.settings.eager_eot_threshold is not None:
                params.append(("eager_eot_threshold", str(self.settings.eager_eot_threshold)))
            longest = round(request.max_silence_seconds * 1000)
            params.append(("eot_timeout_ms", str(min(LONGEST_TIMEOUT_MS, max(SHORTEST_TIMEOUT_MS, longest)))))
        if model == FLUX_MULTILINGUAL and (language := get_base_language(request.language)) in FLUX_LANGUAGES:
            params.append(("language_hint", language))
        return params

    def _list_nova_params(self, request: TranscriptionRequest) -> Params:
        return [
            ("language", _language(request.language)),
            ("channels", "1"),
            ("interim_results", "true"),
            ("punctuate", "true"),
            ("smart_format", str(self.settings.smart_format).lower()),
            ("endpointing", str(self.settings.endpointing_ms)),
        ]


def _language(language: str) -> str:
    if is_cantonese(language):
        return CANTONESE
    base, region = get_base_language(language), language.partition("-")[2]
    if f"{base}-{region}" in REGIONS:
        return f"{base}-{region}"
    return "multi" if base == MULTIPLE_LANGUAGES else base


class _Model(BaseModel):
    name: str
    canonical_name: str
    languages: VendorList[str] = []
    metadata: Mapping[str, object] = {}


class _Models(BaseModel):
    tts: VendorList[_Model] = []


class DeepgramTextToSpeech(_Deepgram[DeepgramVoiceSettings], TextToSpeechProvider[DeepgramVoiceSettings]):
    """Aura's voices, streamed as mu-law.

    One HTTP request per sentence: the WebSocket allows 20 requests per minute, and its errors arrive late.
    """

    name = "deepgram"
    title = "Deepgram Aura"
    Settings = DeepgramVoiceSettings
    audio_format = PHONE_MULAW

    def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        named = request.voice_id or request.model
        voice = named or self.settings.find_voice(request.language) or self.settings.voice_id
        params = [("model", voice), ("encoding", "mulaw"), ("sample_rate", "8000"), ("container", "none")]
        params += NO_RETENTION if self.settings.no_retention else ()
        if request.speed != 1.0:
            params.append(("speed", str(min(FASTEST, max(SLOWEST, request.speed)))))
        return self._connection.stream_audio("/v1/speak", params=params, body={"text": request.text})

    async def list_voices(self) -> Sequence[Voice]:
        models = await self._connection.get("/v1/models", _Models)
        return [_voice(model) for model in {model.canonical_name: model for model in models.tts}.values()]


def _voice(model: _Model) -> Voice:
    tags = model.metadata.get("tags")
    known = ("feminine", "masculine")
    gender = next((tag for tag in tags if tag in known), None) if isinstance(tags, list) else None
    return Voice(model.canonical_name, model.name, next(iter(model.languages), ""), gender)
