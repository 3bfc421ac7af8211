"""Extensions of capability `telephony`, beside `TelephonyProvider`: browser calls over the platform's own socket, for a
carrier without a client SDK; simulated callers; and the operator's own trunks, which can be checked and measured.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, Self

from switchboard.plugin_sdk.media import Frame
from switchboard.plugin_sdk.telephony import CallbackUrls

CLIENT_IDENTITY_PREFIX: Final = "client_"
"""Begins the identity of a client at the carrier."""


def is_client_identity(identity: str) -> bool:
    """Return whether the identity of a browser token is a client's, which may wait for calls. Others only call."""
    return identity.startswith(CLIENT_IDENTITY_PREFIX)


class BrowserSocket(Protocol):
    """The browser's WebSocket. Once it is closed, `receive` returns None and `send` raises `ConnectionError`."""

    async def receive(self) -> Frame | None: ...
    async def send(self, message: Frame) -> None: ...


class BrowserPhone(ABC):
    """A carrier whose browser tokens are for the platform's socket.

    The platform adds the socket's address to the token's `connection` as `url`.
    """

    @abstractmethod
    async def serve_browser(self, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
        """Handle one browser's call from its first message to its end; the platform then closes the socket.

        The platform has not authenticated the browser: its first message must contain a valid token. The call is
        announced to `callbacks` as a `BrowserCall`. Only a token whose identity is a client's (`is_client_identity`)
        may wait for calls: others are for one call.
        """


_KEYS: Final = re.compile(r"\[([0-9*#]+)\]")


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """One line of a simulated caller: text to speak, a WAV file (16-bit PCM, mono or stereo, any rate), or keys.

    Exactly one of the three is set.
    """

    text: str | None = None
    wav: Path | None = None
    keys: str | None = None

    def __post_init__(self) -> None:
        if [self.text, self.wav, self.keys].count(None) != 2:
            raise ValueError("a spoken line has text, a WAV file, or keys")

    @classmethod
    def from_text(cls, line: str) -> Self:
        """Return a line to speak, or the keys that stand in square brackets: `[4711#]`."""
        keys = _KEYS.fullmatch(line.strip())
        return cls(text=line) if keys is None else cls(keys=keys[1])


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
        self, *, from_number: str, to_number: str, body: str, callbacks: CallbackUrls, media_urls: Sequence[str] = ()
    ) -> str:
        """Send a text message to one of the organization's numbers and return the carrier's id for it.

        `media_urls`: addresses of files that `fetch_media` of this carrier has.

        Raises `ProviderError` if the platform does not accept it.
        """


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """Result of the check of one part of a provider, such as a trunk or a gateway.

    `message` says what happened, and what to fix if the part does not work.
    """

    name: str
    works: bool
    message: str


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """Result of a test call.

    `trunk` took the call, and is empty if none did. `message` says what was measured, or why there was no call.
    `advice` says what to fix; it is empty for a call with sound in both directions.
    """

    trunk: str
    message: str
    advice: str


class TrunkCarrier(ABC):
    """A carrier, beside `TelephonyProvider`, over trunks that the operator has set up."""

    @abstractmethod
    async def check_parts(self) -> Sequence[CheckedPart]:
        """Check each trunk by itself, without a call. Raises `ProviderError` if none can be checked.

        `check` raises if one of them does not work.
        """

    @abstractmethod
    async def measure_call(self, from_number: str, to_number: str) -> MeasuredCall:
        """Place a call over the trunks, as the platform does, and measure the sound of both directions.

        Whoever answers hears a tone for some seconds, and should speak or be an echo. Nothing of the platform takes
        part. Both numbers are in E.164. Raises `ProviderError` if no call can be ordered.
        """
