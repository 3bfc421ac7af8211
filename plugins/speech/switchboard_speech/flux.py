"""Deepgram's Flux, which transcribes and judges turns.

Messages: https://developers.deepgram.com/reference/speech-to-text/listen-flux. The order of events:
https://developers.deepgram.com/docs/flux/state.
"""

import json
from typing import Final, Literal

from pydantic import BaseModel
from switchboard.plugin_sdk import TranscriptionRequest, TurnState
from switchboard.plugin_sdk.languages import get_base_language

from switchboard_speech.connection import (
    Params,
    WordTimes,
)
from switchboard_speech.streams import GRACE_SECONDS
from switchboard_speech.turns import TurnStream

PREFIX: Final = "flux-"
MULTILINGUAL: Final = "flux-general-multi"
LANGUAGES: Final = frozenset({"de", "en", "es", "fr", "hi", "it", "ja", "nl", "pt", "ru"})
"""Language hints of `flux-general-multi` (https://developers.deepgram.com/docs/flux/language-prompting)."""
SHORTEST_TIMEOUT_MS, LONGEST_TIMEOUT_MS = 500, 10_000
HEARTBEAT_SECONDS: Final = 30.0
"""Flux has no KeepAlive; it closes a connection without audio or pings after 60 seconds
(https://github.com/deepgram/deepgram-python-sdk/issues/618).
"""
NEARLY_ALL_SECONDS: Final = 0.05
STATES: Final[dict[str, TurnState]] = {
    "StartOfTurn": "ongoing",
    "TurnResumed": "ongoing",
    "EagerEndOfTurn": "eager_end",
    "EndOfTurn": "end",
}


class _Word(BaseModel):
    word: str


class FluxTurnInfo(BaseModel):
    """State of a turn, with all its words; the audio until `audio_window_end` seconds is transcribed."""

    type: Literal["TurnInfo"]
    event: str
    turn_index: int
    audio_window_end: float
    transcript: str
    words: WordTimes[_Word]
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
        kind = json.loads(message).get("type")
        if kind == "Error":
            error = FluxError.model_validate_json(message)
            raise self._connection.error(error.description, code=error.code)
        if kind != "TurnInfo":
            return
        info = FluxTurnInfo.model_validate_json(message)
        self.heard_until = info.audio_window_end
        words = [word.word for word in info.words]
        has_changed = self.turn.update(
            info.turn_index, info.transcript, words, STATES.get(info.event), info.end_of_turn_confidence
        )
        if has_changed or (self.is_finalizing and self.is_judged()):
            self.handle_turn()


class FluxError(BaseModel):
    """An error that ends the stream."""

    code: str
    description: str


def build_flux_params(
    model: str, request: TranscriptionRequest, *, eot_threshold: float, eager_eot_threshold: float | None
) -> Params:
    """Return the parameters of a stream of phone audio, without keyterms."""
    language = get_base_language(request.language)
    params = [
        ("model", model),
        ("encoding", "mulaw"),
        ("sample_rate", "8000"),
        ("eot_threshold", str(eot_threshold)),
    ]
    if eager_eot_threshold is not None and request.max_silence_seconds is not None:
        params.append(("eager_eot_threshold", str(eager_eot_threshold)))
    if request.max_silence_seconds is not None:
        longest = round(request.max_silence_seconds * 1000)
        params.append(("eot_timeout_ms", str(min(LONGEST_TIMEOUT_MS, max(SHORTEST_TIMEOUT_MS, longest)))))
    if model == MULTILINGUAL and language in LANGUAGES:
        params.append(("language_hint", language))
    return params
