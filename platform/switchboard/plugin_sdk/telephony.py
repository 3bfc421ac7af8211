"""Capability `telephony`: a carrier. The core owns routes, sockets and state; a provider translates the carrier's words into ours.

A call, as a carrier sees it: it is placed (`place_call`) or comes in (`IncomingCall` from `receive`, answered by `instruct`); once connected
the carrier opens a WebSocket to the address it was given, whose messages the provider's `MediaCodec` reads and writes; what happens to
the call is told by callbacks, which `receive` verifies and translates.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, TypeAlias

from switchboard.plugin_sdk.media import MediaCodec
from switchboard.plugin_sdk.phone_numbers import AvailableNumber, BoughtNumber
from switchboard.plugin_sdk.provider import Provider, ProviderError, SettingsT_co

# --- what carriers tell us by callback ---

AnsweredBy = Literal["human", "machine", "unknown"]
CallOutcome = Literal["completed", "busy", "no-answer", "failed", "canceled"]
INVALID_NUMBER: Final = "invalid_number"
"""The code of a `ProviderError` from `place_call`, or of a `CallEnded`, that says: there is no such number. Every other code is the carrier's own."""


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """Somebody rings one of our numbers. The carrier waits for `instruct`. A `from_number` that is withheld has no `+`: `anonymous`, say."""

    carrier_call_id: str
    from_number: str
    to_number: str


@dataclass(frozen=True, slots=True)
class BrowserCall(IncomingCall):
    """Somebody calls with a browser token. `to_number` is what they dialled, one of our numbers or anybody's; `from_number` the caller id that they
    ask for, empty where they ask for none. Neither has been checked. The carrier waits for `instruct`."""

    identity: str


@dataclass(frozen=True, slots=True)
class CallAccepted:
    """The carrier is about to dial a call that we placed. From a carrier that `find_call` cannot ask, this is how a call is known after a crash."""

    carrier_call_id: str


@dataclass(frozen=True, slots=True)
class CalleeRinging:
    """A call that we placed rings at its destination."""

    carrier_call_id: str


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call that we placed was picked up."""

    carrier_call_id: str
    answered_by: AnsweredBy = "unknown"


@dataclass(frozen=True, slots=True)
class MachineDetected:
    """The carrier has found out, after the answer, that a machine answered. `beep` says that its greeting is over."""

    carrier_call_id: str
    beep: bool = False


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call is over. `error_message` and `error_code` are the carrier's own; `cost` in US dollars where the carrier tells it."""

    carrier_call_id: str
    outcome: CallOutcome
    duration_seconds: int | None = None
    error_message: str | None = None
    error_code: str | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class RecordingReady:
    """The carrier has recorded the call; `fetch_recording` streams it."""

    carrier_call_id: str
    recording_id: str


@dataclass(frozen=True, slots=True)
class TextMessageReceived:
    """Somebody texted one of our numbers. `opt_out` is set where the carrier itself handled a STOP or START."""

    carrier_text_id: str
    from_number: str
    to_number: str
    body: str
    media_urls: tuple[str, ...] = ()
    opt_out: Literal["stop", "start", "help"] | None = None


@dataclass(frozen=True, slots=True)
class TextMessageStatus:
    """A text that we sent has got on. `opted_out`: it failed because the recipient wants no texts from our number."""

    carrier_text_id: str
    status: Literal["sending", "sent", "delivered", "undelivered", "failed"]
    error_message: str | None = None
    error_code: str | None = None
    segments: int | None = None
    cost: float | None = None
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class TransferTargetReady:
    """The target of a transfer (`introduce`) has heard its introduction, and waits."""

    target_call_id: str


@dataclass(frozen=True, slots=True)
class TransferTargetGone:
    """The target of a transfer did not answer, or has hung up. Told of one that has been connected it means nothing."""

    target_call_id: str
    outcome: CallOutcome


TransferEvent: TypeAlias = TransferTargetReady | TransferTargetGone
CallEvent: TypeAlias = CallAccepted | CalleeRinging | CallAnswered | MachineDetected | CallEnded | RecordingReady
CarrierEvent: TypeAlias = IncomingCall | CallEvent | TransferEvent | TextMessageReceived | TextMessageStatus


@dataclass(frozen=True, slots=True)
class CarrierRequest:
    """A callback as it came in. `url` is the public address that the carrier was given (scheme and host from `PUBLIC_URL`, query kept raw);
    header names are lower-case; `path` is what follows the organization's own callback address (`""`, `"status"`)."""

    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CarrierReply:
    """What the carrier gets as the HTTP answer."""

    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


@dataclass(frozen=True, slots=True)
class ReceivedCallback:
    """A verified callback, translated: what happened, in order, and the answer. An `IncomingCall`'s answer comes from `instruct` instead."""

    events: tuple[CarrierEvent, ...]
    reply: CarrierReply = field(default_factory=CarrierReply)


class InvalidCallback(Exception):
    """A callback is unsigned, altered, too old or not understood; it is answered 403 and logged. The message never holds a secret."""


class UnsubscribedRecipient(ProviderError):
    """The recipient has told the carrier that they want no texts from our number."""


# --- what we tell carriers ---


@dataclass(frozen=True, slots=True)
class CallbackUrls:
    """Where a carrier reaches this organization. `events` is the base of its callbacks (a provider may append `/` and a path of its own)."""

    events: str


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """An outbound call. `reference` is our call's id: a carrier that can keeps it, so that `find_call` finds the call after a crash.

    `media_url` is the wss:// (or ws://) address for the call's audio; it carries a token in its path and never a query string.
    """

    reference: str
    from_number: str
    to_number: str
    media_url: str
    callbacks: CallbackUrls
    ring_seconds: int = 30
    max_duration_seconds: int = 14_400
    detect_machine: bool = True


@dataclass(frozen=True, slots=True)
class ConnectMedia:
    """Answer the call and connect its audio to our socket."""

    media_url: str


@dataclass(frozen=True, slots=True)
class ForwardCall:
    """Connect the call to another number without us."""

    to_number: str
    caller_id: str


@dataclass(frozen=True, slots=True)
class RejectCall:
    """Do not answer."""

    reason: Literal["rejected", "busy"] = "rejected"


Instruction: TypeAlias = ConnectMedia | ForwardCall | RejectCall


@dataclass(frozen=True, slots=True)
class WarmTransfer:
    """A person to whom a call is to be transferred, and what they are told first, in a BCP 47 language."""

    to_number: str
    caller_id: str
    text: str
    language: str = "en-US"
    ring_seconds: int = 30


@dataclass(frozen=True, slots=True)
class OutboundTextMessage:
    """An outbound text. `reference` is our message's id."""

    reference: str
    from_number: str
    to_number: str
    body: str
    callbacks: CallbackUrls


@dataclass(frozen=True, slots=True)
class RecordingStream:
    """A carrier's recording on its way through. `status` is 200 or, for a range, 206 with `content_range`."""

    status: int
    content_type: str
    content_length: int | None
    content_range: str | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class BrowserToken:
    """Lets a browser or a phone app call over the carrier. `connection` is what the carrier's client SDK needs beside the token."""

    token: str
    identity: str
    expires_in_seconds: int
    connection: Mapping[str, str] = field(default_factory=dict)


# --- the provider ---


@dataclass(frozen=True, slots=True)
class TelephonyCapabilities:
    """What a carrier cannot do is said here; the core then refuses it with a clear error instead of asking.

    Without `send_digits` keys are pressed as tones in the call's audio. `warm_transfer` is for a provider that has `introduce` and `connect`.
    """

    text_messages: bool = True
    transfer: bool = True
    warm_transfer: bool = False
    send_digits: bool = True
    recordings: bool = True
    machine_detection: bool = True
    browser_calling: bool = True


class TelephonyProvider(Provider[SettingsT_co]):
    """A carrier. It never sees the database; what must be remembered is in the ids it gives out."""

    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities()

    @property
    def has_browser_calling(self) -> bool:
        """Whether `browser_token` can be asked for. For carriers whose settings may leave out what it takes."""
        return self.capabilities.browser_calling

    # callbacks and media

    @abstractmethod
    async def receive(self, request: CarrierRequest) -> ReceivedCallback:
        """Verify a callback's signature and translate it. A repeated callback translates to the same events. Raises `InvalidCallback`."""

    @abstractmethod
    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CarrierReply:
        """Say what becomes of an incoming call; the reply answers the callback that announced it. Raises `ProviderError`."""

    @abstractmethod
    def create_media_codec(self, media_url: str) -> MediaCodec:
        """A codec for one new media socket, opened at this address of ours.

        Where a carrier brings along to the socket what it was told with the address, `decode` raises `ValueError` for a start that does not.
        """

    # calls

    @abstractmethod
    async def place_call(self, order: OutboundCall) -> str:
        """Start a call; answers the carrier's id of it at once, while it is not yet ringing.

        Raises `OutcomeUnknown` where there may be a call after all, else `ProviderError`: another carrier is asked where it is retryable.
        """

    @abstractmethod
    async def find_call(self, reference: str) -> str | None:
        """The carrier's id of the call placed with this reference, None if there is none (or if the carrier cannot tell). Raises `ProviderError`."""

    @abstractmethod
    async def hang_up(self, carrier_call_id: str) -> None:
        """End a call in whatever state it is; harmless for one that is over. Raises `ProviderError`."""

    @abstractmethod
    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        """Take the call off our socket and connect it to another number. Raises `ProviderError`; the call then goes on with us."""

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        """Begin a warm transfer: call its target and speak the introduction to whoever answers. Answers the carrier's id of that call at once.

        The call itself stays on our socket. `TargetReady` and `TargetGone`, told at `callbacks`, say what comes of it; the core then asks to
        `connect`, or calls it off by `hang_up` of the target's call. Raises `ProviderError`.
        """
        raise ProviderError(f"{self.title} cannot introduce a transfer", code="unsupported", retryable=False)

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        """Take the call off our socket and connect it to the target that waits; either hanging up ends both. Raises as `transfer` does."""
        raise ProviderError(f"{self.title} cannot introduce a transfer", code="unsupported", retryable=False)

    @abstractmethod
    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        """Press keys in a live call (`0`-`9`, `*`, `#`; `w` waits half a second). Raises `ProviderError`."""

    # texts

    @abstractmethod
    async def send_text_message(self, order: OutboundTextMessage) -> str:
        """Send a text; answers the carrier's id of it. What becomes of it follows as `TextStatus`.

        Raises `RecipientOptedOut`, `OutcomeUnknown` where it may have been sent after all, else `ProviderError`.
        """

    # numbers

    @abstractmethod
    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        """Numbers that can be bought now. `country` is ISO 3166 alpha-2. Raises `ProviderError`."""

    @abstractmethod
    async def buy_number(self, phone_number: str, callbacks: CallbackUrls) -> BoughtNumber:
        """Buy a number and direct its calls and texts to us. Buying one that is already ours answers it again and costs nothing.

        Raises `ProviderError`, not retryable where the number is taken.
        """

    @abstractmethod
    async def release_number(self, carrier_number_id: str) -> None:
        """Give a number back; harmless for one that is not ours any more. Raises `ProviderError`."""

    # recordings and browsers

    @abstractmethod
    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        """Stream a recording with our credentials; `byte_range` is a `Range` header to pass on. Raises `ProviderError`."""

    @abstractmethod
    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        """Mint a token with which a browser or app can call. Raises `ProviderError`."""
