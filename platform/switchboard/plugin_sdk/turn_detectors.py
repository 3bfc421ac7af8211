"""Capability `turn_detector`: judgment of whether a caller who pauses has finished a turn."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class PossibleTurn:
    """A pause of the caller, which may be the end of the turn.

    `audio` is 16-bit linear PCM, little-endian, mono, at 8000 samples per second: the turn until 200 milliseconds after
    the caller's last voice, at most its last 8 seconds. `transcript` has the words whose transcript is final, and
    `interim_transcript` those after them that may still change; private data that the agent's model must not see is
    replaced in both. `agent_said` is the agent's last utterance. `language` is BCP 47 (`en-US`), or `mul`.
    `pause_seconds` is the silence since the caller's last voice.
    """

    audio: bytes
    transcript: str = ""
    interim_transcript: str = ""
    agent_said: str = ""
    language: str = "en-US"
    pause_seconds: float = 0.2


@dataclass(frozen=True, slots=True)
class TurnPrediction:
    """Probability from 0 to 1 that the turn is complete. From 0.5 on the agent answers, and from 0.95 on sooner.

    `ask_again_seconds`: ask once more if the caller is still silent after so many seconds. None: wait for the caller's
    next words, or for the longest silence that the agent's settings allow.
    """

    probability: float
    ask_again_seconds: float | None = None


class TurnDetector(Provider[SettingsT_co]):
    """Predicts the ends of turns, for agents whose `turn_detection` has the mode `audio` or `auto`."""

    is_default: ClassVar[bool] = False
    """True for a detector that judges calls with people for organizations that have chosen none: calls over a carrier
    that does not simulate callers, with a transcriber that is not `for_demonstrations`. The first plugin's counts. Only
    for a detector that needs no settings, and whose audio does not leave the machine.
    """

    @abstractmethod
    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        """Judge one pause. The platform waits 150 milliseconds at most, and then decides by the words alone.

        Do not compute in the event loop for longer than a millisecond: all calls of the process wait meanwhile. Raises
        `ProviderError`.
        """
