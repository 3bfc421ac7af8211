"""Extension of capability `telephony`: a carrier that can also play the people who call and text an organization's
numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from switchboard.plugin_sdk.telephony import CallbackUrls


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """One line of a simulated caller: text to speak, or a WAV file (16-bit PCM, mono or stereo, any rate).

    Exactly one of the two is set.
    """

    text: str | None = None
    wav: Path | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.wav is None):
            raise ValueError("a spoken line has either text or a WAV file")


@dataclass(frozen=True, slots=True)
class CallProgress:
    """Progress of a simulated call. `line` (from 1) is set at stage `said`, when that line was spoken completely."""

    stage: Literal["ringing", "connected", "agent_speaking", "said", "ended"]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """Result of a simulated call, as the simulated caller heard it.

    `refused_reason` explains why a call was not answered. `duration_seconds` counts from the answer. `first_reply_ms`
    is the time in milliseconds from the last sound of the first line to the first sound heard after it, None without
    one; `heard_seconds` is the total duration of sound heard. `said` and `heard` are the two directions of the line,
    G.711 mu-law at 8 kHz, of equal length, from the answer on.
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
    """A carrier that can simulate inbound calls and text messages, without a real telephone."""

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
        """Call one of the organization's numbers, speak each line when the agent stops talking, wait for the last
        reply, hang up.

        The call is announced at `callbacks`. Returns once the platform was notified of the end. Raises `ProviderError`
        for a line that cannot be spoken. A call that is refused or ended early is a result, not an error.
        """

    @abstractmethod
    async def simulate_text_message(
        self,
        *,
        from_number: str,
        to_number: str,
        body: str,
        callbacks: CallbackUrls,
        media_urls: Sequence[str] = (),
    ) -> str:
        """Send a text message to one of the organization's numbers and return the carrier's id for it.

        `media_urls`: addresses of files that `fetch_media` of this carrier has.

        Raises `ProviderError` if the platform does not accept it.
        """
