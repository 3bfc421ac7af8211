"""The loopback carrier: a simulated carrier on this machine that behaves to the platform like a real one."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, Literal

from pydantic import Field, SecretStr
from switchboard.plugin_sdk import (
    AvailableNumber,
    BoughtNumber,
    BrowserPhone,
    BrowserSocket,
    BrowserToken,
    CallbackReply,
    CallbackRequest,
    CallbackUrls,
    CallProgress,
    ForwardCall,
    IncomingCall,
    Instruction,
    InvalidCallback,
    MediaCodec,
    MessageFile,
    NumberOrder,
    OutboundCall,
    OutboundTextMessage,
    ProviderError,
    ProviderSettings,
    ReceivedCallback,
    RecordingStream,
    SimulatedCall,
    SimulatedCarrier,
    SpokenLine,
    TelephonyCapabilities,
    TelephonyProvider,
    TextMessageReceived,
    TextMessageStatus,
    UnsupportedRequest,
    WarmTransfer,
    find_client_identity,
)

from switchboard_offline.loopback import browser, signatures, stock, texts
from switchboard_offline.loopback.callbacks import NoticeUndelivered, read_notice, write_reply
from switchboard_offline.loopback.caller import FORWARD_RING_SECONDS, ScriptedCaller, render_line
from switchboard_offline.loopback.clients import RingRequest
from switchboard_offline.loopback.codec import LoopbackCodec
from switchboard_offline.loopback.exchange import CallGone, Exchange, LegCommand, TransferConsultation
from switchboard_offline.loopback.persons import Directory


class LoopbackSettings(ProviderSettings):
    """Settings of the loopback carrier."""

    signing_secret: SecretStr = Field(min_length=16, description="Secret that signs callbacks.")
    people: dict[str, list[str]] = Field(
        default_factory=dict, description="Phone numbers with the lines that the person at each number speaks."
    )
    browsers_only: bool = Field(
        False,
        description=(
            "Only browsers call: the carrier places no calls, sends no text messages, and sells no numbers. Use that "
            "beside a real carrier, whose calls would otherwise fail over to this one."
        ),
    )


class LoopbackTelephony(TelephonyProvider[LoopbackSettings], SimulatedCarrier, BrowserPhone):
    """Calls with real audio, text messages, and phone numbers without an account. The plugin's README lists the
    numbers.

    A call lives in the process that placed it, and ends with the process or with this instance, which is busy
    meanwhile.
    """

    name: ClassVar[str] = "loopback"
    title: ClassVar[str] = "Loopback (a carrier in this machine)"
    Settings: ClassVar[type[ProviderSettings]] = LoopbackSettings
    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities(
        warm_transfer=True, recordings=False, max_media=10, client_calls=True
    )

    def __init__(self, settings: LoopbackSettings) -> None:
        super().__init__(settings)
        self._secret = settings.signing_secret.get_secret_value()
        self._exchange = Exchange(Directory(settings.people), self._secret)

    @classmethod
    def initial_settings(cls) -> dict[str, str]:
        return {"signing_secret": secrets.token_hex(32)}

    async def open(self) -> None:
        await self._exchange.open()

    async def close(self) -> None:
        await self._exchange.close()

    def is_busy(self) -> bool:
        return self._exchange.is_busy

    async def check(self) -> None:
        """Do nothing, because there is no account."""

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        fault = signatures.find_signature_fault(
            self._secret, request.headers.get(signatures.HEADER.lower()), request.url, request.body
        )
        if fault is not None:
            raise InvalidCallback(fault)
        return ReceivedCallback((read_notice(request.body),))

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        if isinstance(instruction, ForwardCall) and find_client_identity(instruction.to_number) is not None:
            return write_reply(instruction, await self._exchange.open_port())
        return write_reply(instruction)

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return LoopbackCodec()

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        self._refuse_beside_browsers()
        subscriber = self._exchange.directory.subscriber(order.to_number)
        leg = await self._exchange.add(order.callbacks.events, order.reference)
        self._exchange.run(leg, lambda leg: leg.place(order, subscriber))
        return leg.call_id

    async def find_call(self, reference: str) -> str | None:
        return self._exchange.find_call_id(reference)

    async def hang_up(self, carrier_call_id: str) -> None:
        with suppress(CallGone):
            await self._exchange.order(carrier_call_id, LegCommand("hang_up"))

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        identity = find_client_identity(to_number)
        if identity is None:
            await self._exchange.order(carrier_call_id, LegCommand("transfer", to_number))
            return
        if not self._exchange.clients.is_registered(identity):
            raise ProviderError("nobody has registered to be rung there", retryable=False)
        request = RingRequest(carrier_call_id, identity, caller_id, FORWARD_RING_SECONDS)
        port = await self._exchange.open_port()
        await self._exchange.order(carrier_call_id, LegCommand("ring", request=request, clients_port=port))

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        target = self._exchange.create_sibling_id(carrier_call_id)
        wanted = TransferConsultation(target, introduction, callbacks.events)
        port = await self._exchange.open_port()
        await self._exchange.order(carrier_call_id, LegCommand("introduce", consultation=wanted, clients_port=port))
        return target

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        await self._exchange.order(carrier_call_id, LegCommand("join", target_call_id))

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        await self._exchange.order(carrier_call_id, LegCommand("digits", digits))

    # text messages

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        self._refuse_beside_browsers()
        texts.check_destination(order)
        text_id = texts.new_text_id()
        self._exchange.spawn(texts.deliver_text(self._exchange.post, order, text_id))
        return text_id

    async def find_text_status(self, carrier_text_id: str) -> TextMessageStatus | None:
        """Return that it was not delivered: this carrier delivers within seconds, unless its process stops before."""
        return TextMessageStatus(carrier_text_id, "undelivered", "The simulated carrier stopped before the delivery.")

    async def fetch_media(self, url: str) -> MessageFile:
        return texts.fetch_file(url)

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        return stock.search_stock(country, area_code, limit)

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        self._refuse_beside_browsers()
        return stock.buy_from_stock(order.phone_number)

    async def release_number(self, carrier_number_id: str) -> None:
        """Do nothing, because the carrier does not record the owners of numbers."""

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        raise UnsupportedRequest("the loopback carrier makes no recordings; the platform records calls itself")

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        token = browser.create_token(self._secret, identity)
        return BrowserToken(token, identity, browser.TOKEN_SECONDS, {"sdk": "switchboard-loopback"})

    async def serve_browser(self, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
        await browser.serve_browser_socket(self._exchange, self._secret, socket, callbacks)

    def _refuse_beside_browsers(self) -> None:
        if self.settings.browsers_only:
            raise UnsupportedRequest("the loopback carrier is for calls from browsers only")

    # simulated people

    async def simulate_call(
        self,
        *,
        from_number: str,
        to_number: str,
        lines: Sequence[SpokenLine],
        callbacks: CallbackUrls,
        progress: Callable[[CallProgress], None] | None = None,
    ) -> SimulatedCall:
        report = progress or (lambda _: None)
        exchange = self._exchange
        call = ScriptedCaller([await render_line(line) for line in lines], exchange.directory, report)
        leg = await exchange.add(callbacks.events)
        report(CallProgress("ringing"))
        announced = IncomingCall(leg.call_id, from_number, to_number)
        await exchange.run(leg, lambda leg: call.ring(leg, exchange.post, callbacks.events, announced))
        report(CallProgress("ended"))
        return call.result(leg)

    async def simulate_text_message(
        self, *, from_number: str, to_number: str, body: str, callbacks: CallbackUrls, media_urls: Sequence[str] = ()
    ) -> str:
        text = TextMessageReceived(texts.new_text_id(), from_number, to_number, body, tuple(media_urls))
        try:
            await self._exchange.post.deliver(callbacks.events, text)
        except NoticeUndelivered as error:
            raise ProviderError(str(error)) from error
        return text.carrier_text_id
