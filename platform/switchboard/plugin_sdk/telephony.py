"""Capability `telephony`: a carrier. The core owns routes and sockets; a provider translates the carrier's protocol.

A call is either placed (`place_call`) or announced by a callback (`IncomingCall` from `receive`, answered by
`instruct`). Once it is connected, the carrier opens a WebSocket to the given address, whose messages the provider's
`MediaCodec` encodes and decodes. Callbacks report the progress of the call; `receive` verifies and translates them.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, TypeAlias

from pydantic import JsonValue

from switchboard.plugin_sdk.callbacks import CallbackReply, CallbackRequest
from switchboard.plugin_sdk.media import MediaCodec
from switchboard.plugin_sdk.phone_numbers import AvailableNumber, BoughtNumber
from switchboard.plugin_sdk.provider import Provider, ProviderError, SettingsT_co, UnsupportedRequest
from switchboard.plugin_sdk.telephony_events import CarrierEvent, IncomingCall, TextMessageStatus
from switchboard.plugin_sdk.text_encoding import TextEncoding

ACCEPT_KEY: Final = "1"
"""Key with which the target of a warm transfer accepts the call."""
ACCEPT_SECONDS: Final = 8
"""Time to press it, after the question."""
ACCEPT_PROMPTS: Final = 2
CLIENT_PREFIX: Final = "client:"
"""Begins the destination of a call to a client: a browser or an app, by the identity of its browser token."""

# --- requests from the carrier ---


@dataclass(frozen=True, slots=True)
class ReceivedCallback:
    """A verified and translated callback: its events, in order, and the response.

    The response to an `IncomingCall` comes from `instruct` instead.
    """

    events: tuple[CarrierEvent, ...]
    reply: CallbackReply = field(default_factory=CallbackReply)


class UnsubscribedRecipient(ProviderError):
    """The recipient has opted out, at the carrier, of text messages from this number."""


# --- requests to the carrier ---


@dataclass(frozen=True, slots=True)
class CallbackUrls:
    """Callback addresses of this organization.

    `events` is the base address; a provider may append `/` and a path of its own.
    """

    events: str


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """An outbound call.

    `reference` is the platform's id of the call; a carrier that can store it does, so that `find_call` finds the call
    after a crash. `media_url` is the wss:// (or ws://) address for the call's audio, with a token in its path and never
    a query string.

    `detect_machine`: report a machine that answers, at once; without it, a carrier that bills detection is not asked.
    `await_greeting_end`: a message is to be left, so report the end of the greeting, too, if the carrier can. The
    platform listens for the beep in any case. `metadata` is the call's, of which a carrier may pass a part on.
    """

    reference: str
    from_number: str
    to_number: str
    media_url: str
    callbacks: CallbackUrls
    ring_seconds: int = 30
    max_duration_seconds: int = 14_400
    detect_machine: bool = True
    await_greeting_end: bool = False
    metadata: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ConnectMedia:
    """Answer the call and connect its audio to the platform's socket."""

    media_url: str


@dataclass(frozen=True, slots=True)
class ForwardCall:
    """Connect the call to another number, or ring a client, without the platform.

    `to_number` is in E.164 or, with `client_calls`, `CLIENT_PREFIX` and an identity. `caller_id` is one of the
    organization's numbers; a client is shown the other party's instead, if it is known.
    """

    to_number: str
    caller_id: str


@dataclass(frozen=True, slots=True)
class RejectCall:
    """Reject the call. `unknown_number`: the called number is not one of the organization's."""

    reason: Literal["rejected", "busy"] = "rejected"
    unknown_number: bool = False


Instruction: TypeAlias = ConnectMedia | ForwardCall | RejectCall


@dataclass(frozen=True, slots=True)
class WarmTransfer:
    """Target of a warm transfer, and the introduction to speak to it first, in a BCP 47 language.

    `prompt` follows the introduction and asks the target to press `ACCEPT_KEY`, which no answering machine does.
    `to_number` may be a client, as in `ForwardCall`; `caller_id` is one of the organization's numbers. `speech`: both
    texts in the agent's voice, as mu-law at 8 kHz, for a carrier that cannot speak them.
    """

    to_number: str
    caller_id: str
    text: str
    prompt: str
    language: str = "en-US"
    ring_seconds: int = 30
    speech: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class OutboundTextMessage:
    """An outbound text message. `reference` is the platform's id of the message.

    `media_urls`: public addresses of files to send with it, which the carrier fetches; at most as many as the
    carrier's `max_media`. `in_conversation`: the contact has written to `from_number`, so the message must come from
    that number; any other may come from a sender of the carrier's settings (`plugin_sdk.sender_ids`).
    """

    reference: str
    from_number: str
    to_number: str
    body: str
    callbacks: CallbackUrls
    media_urls: tuple[str, ...] = ()
    in_conversation: bool = False


@dataclass(frozen=True, slots=True)
class NumberOrder:
    """A phone number to buy.

    `carrier_address` and `carrier_requirements` are the carrier's ids of what a country demands: an address, and
    documents (Twilio's bundle, Telnyx's requirement group, Plivo's compliance application). None stands for the id in
    the provider's settings.
    """

    phone_number: str
    callbacks: CallbackUrls
    carrier_address: str | None = None
    carrier_requirements: str | None = None


@dataclass(frozen=True, slots=True)
class BrowserToken:
    """A token with which a browser or app calls through the carrier.

    `connection` holds what the carrier's client SDK needs besides the token.
    """

    token: str
    identity: str
    expires_in_seconds: int
    connection: Mapping[str, str] = field(default_factory=dict)


# --- files of the carrier ---


@dataclass(frozen=True, slots=True)
class RecordingStream:
    """A recording streamed from the carrier. `status` is 200 or, for a range, 206 with `content_range`."""

    status: int
    content_type: str
    content_length: int | None
    content_range: str | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A file of a text message, streamed from the carrier. `content_type` has no parameters (`image/jpeg`)."""

    content_type: str
    chunks: AsyncIterator[bytes]


# --- the provider ---


@dataclass(frozen=True, slots=True)
class TelephonyCapabilities:
    """Features of a carrier. The core refuses an unsupported request itself, with a clear error.

    Without `send_digits`, keys are sent as tones in the call's audio. `warm_transfer`: the provider implements
    `start_warm_transfer` and `complete_warm_transfer`; without `speaks`, introductions come as audio. `max_media`: most
    files that a text message may have, 0 if the carrier sends none. `client_calls`: forwards and transfers can ring a
    client, with the tokens of `create_browser_token`. Without `sells_numbers`, an organization enters its numbers.
    """

    text_messages: bool = True
    transfer: bool = True
    warm_transfer: bool = False
    speaks: bool = True
    send_digits: bool = True
    recordings: bool = True
    machine_detection: bool = True
    browser_calling: bool = True
    client_calls: bool = False
    sells_numbers: bool = True
    max_media: int = 0


def find_client_identity(destination: str) -> str | None:
    """Return the identity of a destination that is a client; None for a phone number."""
    return destination.removeprefix(CLIENT_PREFIX) if destination.startswith(CLIENT_PREFIX) else None


class TelephonyProvider(Provider[SettingsT_co]):
    """A carrier. It has no access to the database; any state it needs later must be part of the ids that it returns."""

    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities()
    text_encoding: ClassVar[TextEncoding] = TextEncoding()
    """Encoding of text messages: how many segments one has, and how many it may have."""

    @property
    def has_browser_calling(self) -> bool:
        """Return whether `create_browser_token` is available. Override it if that depends on optional settings."""
        return self.capabilities.browser_calling

    # callbacks and media

    @abstractmethod
    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        """Verify a callback's signature and translate the callback.

        A repeated callback translates to the same events. Raises `InvalidCallback`.
        """

    @abstractmethod
    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        """Decide an incoming call; the reply is the response to the callback that announced it.

        Raises `ProviderError`.
        """

    @abstractmethod
    def create_media_codec(self, media_url: str) -> MediaCodec:
        """Create a codec for one new media socket, opened at `media_url`.

        If the carrier passes data from the call's instructions on to the socket, `decode` raises `ValueError` for a
        start message without it.
        """

    # calls

    @abstractmethod
    async def place_call(self, order: OutboundCall) -> str:
        """Start an outbound call and return the carrier's id at once, before the call rings.

        Raises `OutcomeUnknown` if the call may exist nevertheless, else `ProviderError`; a retryable one is tried with
        the next carrier.
        """

    @abstractmethod
    async def find_call(self, reference: str) -> str | None:
        """Return the carrier's id of the call placed with this reference.

        None if there is no such call, or the carrier cannot tell. Raises `ProviderError`.
        """

    @abstractmethod
    async def hang_up(self, carrier_call_id: str) -> None:
        """End a call in any state; no effect on an ended call. Raises `ProviderError`."""

    @abstractmethod
    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        """Disconnect the call from the platform's socket and connect it to another number, or ring a client.

        `to_number` and `caller_id` are those of `ForwardCall`. Raises `ProviderError`; the call then stays with the
        platform.
        """

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        """Call the target, speak the introduction to whoever answers, and return the carrier's id of that call at once.

        The original call stays on the platform's socket. `TransferTargetReady`, once the target has pressed
        `ACCEPT_KEY`, or `TransferTargetGone`, sent to `callbacks`, report the result. A target that presses no key
        within `ACCEPT_SECONDS` hears both texts again, `ACCEPT_PROMPTS` times in all, and is hung up then. The core
        calls `complete_warm_transfer`, or cancels by `hang_up` of the target's call. Raises `ProviderError`.
        """
        raise UnsupportedRequest(f"{self.title} does not support warm transfers")

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        """Disconnect the call from the platform's socket and connect it to the waiting target.

        Either party hanging up ends both calls. Raises `ProviderError` as `transfer` does.
        """
        raise UnsupportedRequest(f"{self.title} does not support warm transfers")

    @abstractmethod
    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        """Press keys in a live call (`0`-`9`, `*`, `#`; `w` waits half a second). Raises `ProviderError`."""

    # text messages

    @abstractmethod
    async def send_text_message(self, order: OutboundTextMessage) -> str:
        """Send a text message and return the carrier's id for it. Its delivery is reported as `TextMessageStatus`.

        Raises `UnsubscribedRecipient`, `OutcomeUnknown` if it may have been sent nevertheless, else `ProviderError`.
        """

    async def find_text_status(self, carrier_text_id: str) -> TextMessageStatus | None:
        """Return the status of a text message that the carrier has accepted, whose report may have been lost. None if
        the carrier cannot tell. Raises `ProviderError`.
        """
        return None

    async def fetch_media(self, url: str) -> MessageFile:
        """Stream a file of a received text message, at one of its `media_urls`, with the account's credentials.

        A carrier that reports `media_urls` implements it. Raises `ProviderError`, retryable if the file may be there
        later.
        """
        raise UnsupportedRequest(f"{self.title} does not return files")

    # numbers

    @abstractmethod
    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        """List numbers that can be bought now. `country` is ISO 3166-1 alpha-2. Raises `ProviderError`."""

    @abstractmethod
    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        """Buy a number and direct its calls and text messages to the platform.

        Buying a number that the account already has returns it again at no cost. Raises `ProviderError`, not retryable
        if the number is taken.
        """

    @abstractmethod
    async def release_number(self, carrier_number_id: str) -> None:
        """Release a number; no effect on a number that the account no longer has. Raises `ProviderError`."""

    # recordings and browsers

    @abstractmethod
    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        """Stream a recording with the account's credentials.

        `byte_range` is a `Range` header to pass on. Raises `ProviderError`.
        """

    @abstractmethod
    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        """Create a token with which a browser or app can call and, with `client_calls`, be rung by its identity.

        Raises `ProviderError`.
        """
