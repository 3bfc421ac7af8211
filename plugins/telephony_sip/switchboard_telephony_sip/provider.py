"""Your own SIP trunks as a carrier.

The provider holds no call: gateways do (`gateway/process.py`), and this class tells them what to do.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import ClassVar, Final, Literal

from switchboard.plugin_sdk import (
    AvailableNumber,
    BoughtNumber,
    BrowserToken,
    CallbackReply,
    CallbackRequest,
    CallbackUrls,
    CheckedPart,
    IncomingCall,
    Instruction,
    InvalidCallback,
    MeasuredCall,
    MediaCodec,
    NumberOrder,
    OutboundCall,
    OutboundTextMessage,
    ProviderError,
    ProviderSettings,
    ReceivedCallback,
    RecordingStream,
    TelephonyCapabilities,
    TelephonyProvider,
    TrunkCarrier,
    UnsupportedRequest,
    WarmTransfer,
)

from switchboard_telephony_sip.callbacks import read_gateway_event, write_callback
from switchboard_telephony_sip.codec import SipCodec
from switchboard_telephony_sip.commands import (
    CallCommand,
    CheckCommand,
    CommandResult,
    DigitsCommand,
    FindCommand,
    IntroduceCommand,
    MeasureCommand,
    MeasurementCommand,
    PlaceCommand,
    SipConnectCommand,
    SipHangUpCommand,
    TextCommand,
    TransferCommand,
)
from switchboard_telephony_sip.diagnosis import describe_measurement
from switchboard_telephony_sip.gateways import CallUnknown, Gateways, GatewayUnreachable, NotServed
from switchboard_telephony_sip.headers import choose_sip_headers
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signatures import SIGNATURE_HEADER, find_fault_of_signature

SELLS_NONE: Final = "your own SIP trunk sells no numbers"

UNREACHABLE_ADVICE: Final = "Run `switchboard sip-gateway`, and enter the address of its control API as `gateways`."
NOT_SERVED_ADVICE: Final = (
    "A gateway needs the platform's database and secret keys, and a --control-url that `gateways` has. It reads new "
    "settings within 5 seconds."
)


class SipTelephony(TelephonyProvider[SipSettings], TrunkCarrier):
    """Calls over SIP trunks and PBXs, by processes `switchboard sip-gateway`."""

    name: ClassVar[str] = "sip"
    title: ClassVar[str] = "SIP trunk"
    Settings: ClassVar[type[ProviderSettings]] = SipSettings
    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities(
        warm_transfer=True,
        speaks=False,
        recordings=False,
        machine_detection=False,
        browser_calling=False,
        sells_numbers=False,
    )

    def __init__(self, settings: SipSettings) -> None:
        super().__init__(settings)
        self._secret = settings.signing_secret.get_secret_value()
        self._opened: Gateways | None = None

    @classmethod
    def initial_settings(cls) -> dict[str, str]:
        return {"signing_secret": secrets.token_hex(32)}

    async def open(self) -> None:
        self._opened = Gateways(self.settings.gateways, self._secret)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def check(self) -> None:
        """Check all trunks at every gateway; the message names those that do not work.

        A gateway without these settings is not a fault: they may be those of a file that was not applied yet.
        """
        broken = [part for part in await self._check(needs_service=False) if not part.works]
        if broken:
            raise ProviderError("; ".join(f"{part.name}: {part.message}" for part in broken), retryable=False)

    async def check_parts(self) -> Sequence[CheckedPart]:
        """Ask every gateway whether it has registered, and to place an OPTIONS to each host of each trunk."""
        return await self._check(needs_service=True)

    async def _check(self, *, needs_service: bool) -> list[CheckedPart]:
        checks = (self._check_gateway(each, needs_service=needs_service) for each in self._gateways.addresses)
        return [part for parts in await asyncio.gather(*checks) for part in parts]

    async def _check_gateway(self, gateway: str, *, needs_service: bool) -> list[CheckedPart]:
        name, command = f"gateway {gateway}", CheckCommand(self.settings.digest)
        try:
            reports = (await self._gateways.command(gateway, command)).trunks
        except GatewayUnreachable as error:
            return [CheckedPart(name, False, f"{error.message}. {UNREACHABLE_ADVICE}")]
        except NotServed as error:
            return [CheckedPart(name, False, f"{error.message}. {NOT_SERVED_ADVICE}")] if needs_service else []
        except ProviderError as error:
            return [CheckedPart(name, False, error.message)]
        suffix = f" at {name}" if len(self._gateways.addresses) > 1 else ""
        return [CheckedPart(f"trunk {report.name}{suffix}", report.works, report.message) for report in reports]

    async def measure_call(self, from_number: str, to_number: str) -> MeasuredCall:
        """Have the first gateway that can be reached place a test call, and wait for its result."""
        for gateway in self._gateways.addresses:
            try:
                call_id = (await self._gateways.command(gateway, MeasureCommand(from_number, to_number))).call_id or ""
            except GatewayUnreachable:
                continue
            command, result = MeasurementCommand(call_id), None
            try:
                while result is None:
                    result = (await self._gateways.command(gateway, command)).measurement
            except CallUnknown:
                raise ProviderError(f"gateway {gateway} has stopped") from None
            return describe_measurement(result)
        raise ProviderError(f"no gateway can be reached. {UNREACHABLE_ADVICE}", retryable=False)

    @property
    def _gateways(self) -> Gateways:
        if self._opened is None:
            raise ProviderError("the SIP carrier is not open")
        return self._opened

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        fault = find_fault_of_signature(
            self._secret, request.headers.get(SIGNATURE_HEADER.lower()), request.url, request.body
        )
        if fault is not None:
            raise InvalidCallback(fault)
        try:
            return ReceivedCallback((read_gateway_event(request.body),))
        except ValueError:
            raise InvalidCallback("the callback is not a gateway's") from None

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        return CallbackReply(write_callback(instruction), "application/json")

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return SipCodec()

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        command = PlaceCommand(
            order.reference,
            order.from_number,
            order.to_number,
            order.media_url,
            order.callbacks.events,
            order.ring_seconds,
            order.max_duration_seconds,
            choose_sip_headers(order.metadata),
        )
        return _get_id(await self._gateways.command_first(command), "the call")

    async def find_call(self, reference: str) -> str | None:
        for gateway in self._gateways.addresses:
            try:
                found = (await self._gateways.command(gateway, FindCommand(reference))).call_id
            except (CallUnknown, GatewayUnreachable):
                continue
            if found is not None:
                return found
        return None

    async def hang_up(self, carrier_call_id: str) -> None:
        try:
            await self._gateways.command_holder(carrier_call_id, SipHangUpCommand(carrier_call_id))
        except CallUnknown:
            return

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        await self._command_live(carrier_call_id, TransferCommand(carrier_call_id, to_number, caller_id))

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        command = IntroduceCommand(
            carrier_call_id,
            introduction.to_number,
            introduction.caller_id,
            introduction.ring_seconds,
            introduction.speech,
            callbacks.events,
        )
        return _get_id(await self._command_live(carrier_call_id, command, creates=True), "the target's call")

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        await self._command_live(carrier_call_id, SipConnectCommand(carrier_call_id, target_call_id))

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        await self._command_live(carrier_call_id, DigitsCommand(carrier_call_id, digits))

    async def _command_live(
        self, carrier_call_id: str, command: CallCommand, *, creates: bool = False
    ) -> CommandResult:
        try:
            return await self._gateways.command_holder(carrier_call_id, command, creates=creates)
        except CallUnknown:
            raise ProviderError("the call is over", code="call_gone", retryable=False) from None

    # text messages

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        command = TextCommand(order.from_number, order.to_number, order.body, order.callbacks.events)
        return _get_id(await self._gateways.command_first(command), "the text message")

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        raise UnsupportedRequest(SELLS_NONE)

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        raise UnsupportedRequest(SELLS_NONE)

    async def release_number(self, carrier_number_id: str) -> None:
        """Do nothing, because the number stays with the trunk."""

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        raise UnsupportedRequest("on a SIP trunk, the platform records calls")

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        raise UnsupportedRequest("on a SIP trunk, calls come from telephones only")


def _get_id(result: CommandResult, owner: str) -> str:
    if result.call_id is None:
        raise ProviderError(f"the SIP gateway did not return the id of {owner}")
    return result.call_id
