"""What a carrier adds to capability `telephony` when it can also play the people who call and text our numbers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from switchboard.plugin_sdk.telephony import CallbackUrls


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """One thing a simulated person says: a text to be spoken, or a WAV file (16-bit PCM, mono or stereo, any rate). Exactly one is set."""

    text: str | None = None
    wav: Path | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.wav is None):
            raise ValueError("a spoken line is either a text or a WAV file")


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How a simulated call gets on. `line` (from 1) is set with `said`, once that line has been spoken to its end."""

    stage: Literal["ringing", "connected", "agent_speaking", "said", "ended"]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """How a simulated call went, as the person at the phone heard it.

    `refused_reason` says why a call was not answered. `duration_seconds` counts from the answer. `first_reply_ms` is the time from the first
    line's last sound to the first sound heard after it, None where none came; `heard_seconds` is how much sound was heard in all.
    `said` and `heard` are the two directions of the line, G.711 mu-law at 8 kHz, of equal length and beginning with the answer.
    """

    carrier_call_id: str
    answered: bool
    duration_seconds: float = 0.0
    first_reply_ms: int | None = None
    heard_seconds: float = 0.0
    hung_up_by: Literal["person", "agent", "limit"] | None = None
    refused_reason: str | None = None
    said: bytes = field(default=b"", repr=False)
    heard: bytes = field(default=b"", repr=False)


class SimulatedCarrier(ABC):
    """What a carrier adds that can also play the people who call and text our numbers: no real telephone is involved."""

    @abstractmethod
    async def simulate_call(
        self,
        *,
        from_number: str,
        to_number: str,
        lines: Sequence[SpokenLine],
        callbacks: CallbackUrls,
        progress: Callable[[CallProgress], None] | None = None,
    ) -> SimulatedCall:
        """Ring one of our numbers, speak each line when the agent has stopped talking, wait for the last answer, hang up.

        `callbacks` is where the number's calls are announced. Returns when the platform has been told the end. Raises `ProviderError` for a
        line that cannot be spoken; a call that is refused or hung up early is a result, not an error.
        """

    @abstractmethod
    async def simulate_text_message(
        self, *, from_number: str, to_number: str, body: str, callbacks: CallbackUrls
    ) -> str:
        """Text one of our numbers; answers the carrier's id of the text. Raises `ProviderError` where the platform does not take it."""
