"""AssemblyAI's Universal-Streaming, version 3 (https://www.assemblyai.com/docs/streaming/message-sequence)."""

import json
from typing import Annotated, Final, Self

import aiohttp
from pydantic import BaseModel, Field, HttpUrl, StringConstraints, field_validator, model_validator
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    TurnState,
    Word,
)
from switchboard.plugin_sdk.languages import get_base_language, get_single_language

from switchboard_speech.connection import (
    ConnectedProvider,
    Params,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    WordTimes,
)
from switchboard_speech.streams import GRACE_SECONDS, TurnStream

JUDGMENT_SECONDS: Final = 1.5
"""Longest wait for AssemblyAI's own end of a turn: the words are not final before it."""
MOST_KEYTERMS: Final = 100
LONGEST_KEYTERM: Final = 50
FINAL_CODES: Final = frozenset({1008, 3006, 4001, 4002, 4003})
"""Not authorized, no funds, or an invalid request: a retry changes nothing."""
TOO_MANY: Final = "concurrent"
BY_CONFIDENCE: Final = "universal-streaming-"
UNIVERSAL_3: Final = ("universal-3", "u3-")
"""Prefixes of models that accept languages."""
LANGUAGES: Final = frozenset((
    "ar", "da", "de", "en", "es", "fi", "fr", "he", "hi", "it", "ja", "nl", "no", "pt", "sv", "tr", "vi", "zh",
))  # fmt: skip
"""Languages of Universal-3.5 Pro (https://www.assemblyai.com/docs/streaming/universal-3-pro/supported-languages, and
`language_codes` of github.com/AssemblyAI/assemblyai-python-sdk, August 2026).
"""
MOST_LANGUAGES: Final = 10
LONGEST_PAUSE_MS: Final = "3600"


class AssemblyAISettings(SpeechVendorSettings):
    """Settings of AssemblyAI."""

    base_url: VendorUrl = HttpUrl("https://streaming.assemblyai.com")
    api_url: HttpUrl = Field(
        HttpUrl("https://api.assemblyai.com"), description="Address of the REST API, which checks the key."
    )
    model: str | None = Field(
        None, description="Model for agents that name none. By default English or multilingual, by the language."
    )
    language_codes: list[str] = Field(
        default=[],
        max_length=MOST_LANGUAGES,
        description="Languages of callers who switch between several (`mul`), for Universal-3, most likely ones first.",
    )
    turn_detection: bool = Field(
        False, description="AssemblyAI judges the turns of agents whose turn detection has the mode `audio` or `auto`."
    )
    redact_pii: bool = Field(
        False,
        description="AssemblyAI replaces personal data by its kind, such as [PERSON_NAME]. Without interim words: an "
        "interruption is noticed later. Not together with `turn_detection`.",
    )
    redact_pii_policies: list[Annotated[str, StringConstraints(pattern="^[a-z_]+$")]] = Field(
        default=[],
        description="Kinds that `redact_pii` replaces, such as person_name; empty: all that AssemblyAI knows.",
    )

    @model_validator(mode="after")
    def _require_whole_turns(self) -> Self:
        if self.redact_pii and self.turn_detection:
            raise ValueError("redact_pii needs whole turns, which turn_detection does not wait for")
        return self

    @field_validator("language_codes")
    @classmethod
    def _check_languages(cls, codes: list[str]) -> list[str]:
        if unknown := set(codes) - LANGUAGES:
            raise ValueError(f"{', '.join(sorted(unknown))}: Universal-3 knows {', '.join(sorted(LANGUAGES))}")
        return codes


class _Word(BaseModel):
    text: str
    start: int
    end: int
    word_is_final: bool = True


class _Message(BaseModel):
    """A Turn with its transcript so far, or an Error with its code and message.

    `utterance` is set where Universal-Streaming notices a pause that may end the turn.
    """

    type: str | None = None
    turn_order: int = 0
    transcript: str = ""
    utterance: str = ""
    end_of_turn: bool = False
    turn_is_formatted: bool = False
    end_of_turn_confidence: float | None = None
    words: WordTimes[_Word] = []
    error_code: int | None = None
    error: str | None = None


class _Transcripts(BaseModel):
    transcripts: VendorList[object]


def _turn_detection(model: str, max_silence_seconds: float | None, *, has_partials: bool) -> Params:
    """Return parameters that limit AssemblyAI's own turn detection to a silence, or disable it without one.

    AssemblyAI would not confirm the end of a turn that it had ended itself. Universal-Streaming decides by confidence,
    later models by pauses; the latter send interim words only on request.
    """
    if max_silence_seconds is not None:
        return [("max_turn_silence", str(round(max_silence_seconds * 1000)))]
    if model.startswith(BY_CONFIDENCE):
        return [("end_of_turn_confidence_threshold", "1.0")]
    return [
        ("min_turn_silence", LONGEST_PAUSE_MS),
        ("max_turn_silence", LONGEST_PAUSE_MS),
        *([("continuous_partials", "true")] if has_partials else []),
    ]


def _read_fault(body: str) -> VendorFault:
    message = _Message.model_validate_json(body)
    return VendorFault(str(message.error_code) if message.error_code else None, message.error or body)


def _error_of(connection: VendorConnection, message: _Message) -> ProviderError:
    words = message.error or "no reason was given"
    final = message.error_code in FINAL_CODES and TOO_MANY not in words.lower()
    return connection.error(words, code=str(message.error_code) if message.error_code else None, retryable=not final)


class _Stream(TurnStream):
    """Stream in messages of 50 to 1000 milliseconds, which is what AssemblyAI accepts."""

    FINALIZE = json.dumps({"type": "ForceEndpoint"})
    CLOSE = json.dumps({"type": "Terminate"})
    SHORTEST, LONGEST = 400, 8000

    def __init__(
        self,
        connection: VendorConnection,
        socket: aiohttp.ClientWebSocketResponse,
        max_silence_seconds: float | None = None,
        *,
        is_formatted: bool = False,
        has_words: bool = True,
    ) -> None:
        """Create the stream; without `max_silence_seconds` AssemblyAI does not judge turns.

        `is_formatted`: each turn comes once more, formatted. `has_words` is False where the transcript is redacted:
        nothing says that its list of words is, too.
        """
        self._has_words = has_words
        self._is_formatted = is_formatted
        self._unformatted: _Message | None = None
        self._ended_turn = -1
        self._judges = max_silence_seconds is not None
        self._wait = min(JUDGMENT_SECONDS, max_silence_seconds or 0.0)
        self._is_forced = False
        super().__init__(connection, socket, self._wait)

    async def finalize(self) -> None:
        if self._judges:
            self._is_forced = False
            await self.await_judgment(self._wait + GRACE_SECONDS)
        else:
            await self.send_rest()
            await super().finalize()

    async def handle_pause_over(self) -> None:
        if self.is_finalizing:
            self._is_forced = True
            await super().finalize()

    def handle_message(self, message: str) -> None:
        said = _Message.model_validate_json(message)
        if said.error is not None:
            raise _error_of(self._connection, said)
        if said.type != "Turn":
            return
        if self._judges:
            self._handle_judged_turn(said)
            return
        if self._is_formatted and said.turn_order <= self._ended_turn:
            return  # Its formatted form comes too late.
        if self._unformatted is not None and said.turn_order > self._unformatted.turn_order:
            self._add_turn(self._unformatted, is_final=True)
        is_final = said.end_of_turn and (said.turn_is_formatted or not self._is_formatted or not said.transcript)
        self._unformatted = said if said.end_of_turn and not is_final else None
        self._add_turn(said, is_final=is_final)

    def confirm_end(self) -> None:
        """Confirm the end of an utterance, with the words of a turn whose formatted form does not come."""
        if self._unformatted is None:
            super().confirm_end()
            return
        unformatted, self._unformatted = self._unformatted, None
        self._add_turn(unformatted, is_final=True)

    def _add_turn(self, said: _Message, *, is_final: bool) -> None:
        since = said.words[0].start if said.words else 0
        timed = said.words if self._has_words else ()
        words = tuple(Word(word.text, word.start - since, word.end - since) for word in timed)
        finalized = self.is_finalizing and is_final
        if is_final:
            self._ended_turn = said.turn_order
        if said.transcript or finalized:
            self.add_transcript(Transcript(said.transcript, is_final, finalized, said.end_of_turn_confidence, words))

    def _handle_judged_turn(self, said: _Message) -> None:
        state: TurnState | None = "end" if said.end_of_turn else "eager_end" if said.utterance else None
        is_forced_end = said.end_of_turn and self._is_forced
        if is_forced_end:
            self._is_forced, state = False, "ongoing"
        self.heard_until = self.sent_seconds
        words = [word.text for word in said.words if word.word_is_final]
        confidence = said.end_of_turn_confidence or 0.0
        has_changed = self.turn.update(said.turn_order, said.transcript, words, state, confidence)
        if is_forced_end and self.is_finalizing:
            self.confirm_end()
        elif has_changed:
            self.handle_turn()


class AssemblyAISpeechToText(ConnectedProvider[AssemblyAISettings], SpeechToTextProvider[AssemblyAISettings]):
    """Universal-Streaming with the phone's mu-law audio, and its turn detection if the settings want it."""

    name = "assemblyai"
    title = "AssemblyAI"
    Settings = AssemblyAISettings
    audio_format = PHONE_MULAW

    def connection(self, settings: AssemblyAISettings) -> VendorConnection:
        return VendorConnection(
            self.title, settings, {"Authorization": settings.api_key.get_secret_value()}, _read_fault
        )

    async def check(self) -> None:
        url = f"{str(self.settings.api_url).rstrip('/')}/v2/transcript"
        await self._connection.get(url, _Transcripts, params=[("limit", "1")])

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        english = get_base_language(request.language) == "en"
        usual = f"universal-streaming-{'english' if english else 'multilingual'}"
        model = request.model or self.settings.model or usual
        hints = [hint for hint in request.hints if len(hint) <= LONGEST_KEYTERM][:MOST_KEYTERMS]
        max_silence_seconds = request.max_silence_seconds if self.settings.turn_detection else None
        # Turns with punctuation, case, and digits, as Universal-3 writes them by itself. A turn then comes twice, the
        # formatted one last (https://www.assemblyai.com/docs/streaming/universal-streaming, November 2026). A turn that
        # AssemblyAI judges is not waited for twice. The documentation does not say which of the two is redacted, so
        # that redacted turns are asked for in one form.
        is_formatted = model.startswith(BY_CONFIDENCE) and max_silence_seconds is None and not self.settings.redact_pii
        params = [
            ("speech_model", model),
            ("sample_rate", "8000"),
            ("encoding", "pcm_mulaw"),
            *([("format_turns", "true")] if is_formatted else []),
            *_turn_detection(model, max_silence_seconds, has_partials=not self.settings.redact_pii),
            *self._list_languages(model, request.language),
            *self._list_redactions(),
            *([("keyterms_prompt", json.dumps(hints))] if hints else []),
        ]
        socket = await self._connection.begin_session("/v3/ws", params=params, check_start=self._check_start)
        has_words = not self.settings.redact_pii
        return _Stream(self._connection, socket, max_silence_seconds, is_formatted=is_formatted, has_words=has_words)

    def _list_redactions(self) -> Params:
        """Return the parameters of redaction (https://assemblyai.com/docs/streaming/pii-redaction, November 2026).

        Only whole turns are redacted, so no other ones are asked for.
        """
        if not self.settings.redact_pii:
            return []
        policies = self.settings.redact_pii_policies
        return [
            ("redact_pii", "true"),
            ("redact_pii_sub", "entity_name"),
            ("include_partial_turns", "false"),
            *([("redact_pii_policies", json.dumps(policies))] if policies else []),
        ]

    def _list_languages(self, model: str, language: str) -> Params:
        """Return the parameter that steers Universal-3 to languages; without one it detects them."""
        if not model.startswith(UNIVERSAL_3):
            return []
        base = get_single_language(language)
        codes = self.settings.language_codes if base is None else [base]
        return [("language_codes", json.dumps(codes))] if codes and LANGUAGES.issuperset(codes) else []

    def _check_start(self, first: aiohttp.WSMessage) -> None:
        """Accept `Begin`."""
        if first.type is aiohttp.WSMsgType.CLOSE:
            message = _Message(error_code=first.data, error=first.extra or "the session was closed")
        elif first.type is aiohttp.WSMsgType.TEXT:
            message = _Message.model_validate_json(first.data)
        else:
            raise self._connection.error("the session was lost before it began")
        if message.error is not None:
            raise _error_of(self._connection, message)
