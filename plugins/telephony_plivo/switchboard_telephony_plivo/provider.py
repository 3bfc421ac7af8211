"""The carrier Plivo, over its REST API.

Plivo fetches the instructions of each call from an address, so callbacks report progress and ask for instructions.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import msgspec
from switchboard.plugin_sdk import (
    AvailableNumber,
    BoughtNumber,
    BrowserToken,
    CallbackReply,
    CallbackRequest,
    CallbackUrls,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    Instruction,
    MediaCodec,
    MessageFile,
    NumberOrder,
    OutboundCall,
    OutboundTextMessage,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    PublicHttpClient,
    ReceivedCallback,
    RecordingStream,
    TelephonyCapabilities,
    TelephonyProvider,
    TextEncoding,
    TextMessageStatus,
    TransferTargetReady,
    UnsupportedRequest,
    WarmTransfer,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard.plugin_sdk.recordings import CarrierFiles, stream_carrier_media
from switchboard.plugin_sdk.retries import allow_another_carrier, ignore_missing
from switchboard.plugin_sdk.sender_ids import choose_sender

from switchboard_telephony_plivo import addresses, markup, stock
from switchboard_telephony_plivo import callbacks as paths
from switchboard_telephony_plivo.addresses import strip_plus
from switchboard_telephony_plivo.callbacks import ID, translate_plivo_text_status
from switchboard_telephony_plivo.codec import PlivoCodec
from switchboard_telephony_plivo.settings import PlivoSettings
from switchboard_telephony_plivo.transport import Parameter, PlivoClient, PlivoDone

MEDIA: Final = "https://media.plivo.com"
MAX_SEGMENTS: Final = 11
"""Plivo takes 1600 characters in GSM 03.38, and 737 in UCS-2
(https://www.plivo.com/docs/messaging/api/message/send-a-message).
"""
WAIT_SECONDS: Final = 0.5
_KEYS: Final = re.compile(r"w+|[^w]+")


class PlivoCall(msgspec.Struct):
    """A call that was accepted. The id of the request is also that of the call (`liveCallGetResponse.json` of
    plivo-python).
    """

    request_uuid: Annotated[str, msgspec.Meta(pattern=f"^{ID.pattern}$")]


class PlivoMessage(msgspec.Struct):
    message_uuid: list[str]


class PlivoTextRecord(msgspec.Struct):
    """Record of a text message. Plivo's amounts are strings."""

    message_state: str
    error_code: str | None = None
    units: int | None = None
    total_amount: str = ""


class PlivoApplication(msgspec.Struct):
    enabled: bool = True


class PlivoTelephony(TelephonyProvider[PlivoSettings]):
    """Calls, audio streams, text messages, and phone numbers."""

    name: ClassVar[str] = "plivo"
    title: ClassVar[str] = "Plivo"
    Settings: ClassVar[type[ProviderSettings]] = PlivoSettings
    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities(
        warm_transfer=True, recordings=False, browser_calling=False, max_media=paths.MAX_MEDIA
    )
    text_encoding: ClassVar[TextEncoding] = TextEncoding(max_segments=MAX_SEGMENTS)

    def __init__(self, settings: PlivoSettings) -> None:
        super().__init__(settings)
        self._token = settings.auth_token.get_secret_value()
        self._base_url = str(settings.base_url) if settings.base_url else None
        self._opened: tuple[PlivoClient, PublicHttpClient] | None = None

    async def open(self) -> None:
        client = PlivoClient(self.settings.auth_id, self._token, self._base_url)
        self._opened = client, PublicHttpClient(self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            client, http = self._opened
            await client.close()
            await http.close()

    async def check(self) -> None:
        application = await self._client.get(f"Application/{self.settings.application_id}/", PlivoApplication)
        if not application.enabled:
            raise ProviderError("the Plivo application is not enabled", retryable=False)

    def _require_open(self) -> tuple[PlivoClient, PublicHttpClient]:
        if self._opened is None:
            raise ProviderError("Plivo is not open")
        return self._opened

    @property
    def _client(self) -> PlivoClient:
        return self._require_open()[0]

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        fields = paths.verify_plivo_signature(
            request, self._token, is_text_message=request.path in (paths.MESSAGE, paths.TEXT)
        )
        kind, _, state = request.path.partition("/")
        events_url = addresses.get_events_url(request)
        if kind == addresses.ANSWER:
            stream = self._stream_markup(addresses.decode_state(state), events_url)
            return ReceivedCallback((paths.translate_answer(fields),), markup.respond_with(stream))
        if kind == addresses.DIAL:
            call = addresses.read_forwarded_call(state)
            return ReceivedCallback((), markup.respond_with(markup.build_dial(call.to_number, call.caller_id)))
        if kind == addresses.INTRODUCE:
            language, text = addresses.read_introduction(state)
            question = markup.build_questions(text, language, f"{events_url}/{paths.INTRODUCED}")
            return ReceivedCallback((), markup.respond_with(*question))
        event = paths.translate_plivo_callback(request.path, fields)
        events = () if event is None else (event,)
        if isinstance(event, TransferTargetReady):
            return ReceivedCallback(events, markup.respond_with(markup.join_multiparty_call(event.target_call_id)))
        ending = [markup.build_hangup()] if request.path == paths.INTRODUCED else []
        return ReceivedCallback(events, markup.respond_with(*ending))

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        match instruction:
            case ConnectMedia(media_url):
                return markup.respond_with(self._stream_markup(media_url, callbacks.events))
            case ForwardCall(to_number, caller_id):
                return markup.respond_with(markup.build_dial(to_number, caller_id))
        return markup.respond_with(markup.build_hangup(reason=instruction.reason))

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return PlivoCodec(derive_stream_token(self._token, media_url))

    def _stream_markup(self, media_url: str, events_url: str) -> Element:
        return markup.build_stream(
            media_url, derive_stream_token(self._token, media_url), f"{events_url}/{paths.STREAM}"
        )

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        events = order.callbacks.events
        given: dict[str, Parameter] = {
            "answer_url": addresses.format_answer_url(events, order.media_url),
            "ring_url": f"{events}/{paths.RINGING}",
            "hangup_url": f"{events}/{paths.STATUS}",
            "time_limit": order.max_duration_seconds,
        }
        if order.detect_machine:
            given |= {"machine_detection": "true", "machine_detection_url": f"{events}/{paths.MACHINE}"}
        try:
            return await self._dial(order.to_number, order.from_number, order.ring_seconds, given)
        except ProviderError as error:
            raise allow_another_carrier(error) from error.__cause__

    async def _dial(self, to_number: str, from_number: str, ring_seconds: int, given: Mapping[str, Parameter]) -> str:
        numbers: dict[str, Parameter] = {
            "to": strip_plus(to_number),
            "from": strip_plus(from_number),
            "ring_timeout": ring_seconds,
        }
        return (await self._client.post("Call/", PlivoCall, {**numbers, **given}, creates=True)).request_uuid

    async def find_call(self, reference: str) -> str | None:
        """Return None: Plivo stores no reference with a call.

        Its first callback, whose address names the call, reports the call before the platform needs to search for it.
        """
        return None

    async def hang_up(self, carrier_call_id: str) -> None:
        with ignore_missing():
            await self._client.delete(_format_call_path(carrier_call_id))

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        url = addresses.format_dial_url(callbacks.events, to_number, caller_id)
        await self._client.post(_format_call_path(carrier_call_id), PlivoDone, {"legs": "aleg", "aleg_url": url})

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        given = {
            "answer_url": addresses.format_introduction_url(callbacks.events, introduction),
            "hangup_url": f"{callbacks.events}/{paths.TARGET}",
        }
        return await self._dial(introduction.to_number, introduction.caller_id, introduction.ring_seconds, given)

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        """Move the call into the target's multiparty call (https://www.plivo.com/docs/voice/api/multiparty-calls)."""
        given: dict[str, Parameter] = {
            "role": "Customer",
            "call_uuid": carrier_call_id,
            "start_mpc_on_enter": True,
            "end_mpc_on_exit": True,
            "enter_sound": "none",
            "exit_sound": "none",
        }
        await self._client.post(f"MultiPartyCall/name_{target_call_id}/Participant/", PlivoDone, given)

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        for keys in _KEYS.findall(digits):
            if keys.startswith("w"):
                await asyncio.sleep(WAIT_SECONDS * len(keys))
            else:
                await self._client.post(
                    f"{_format_call_path(carrier_call_id)}DTMF/",
                    PlivoDone,
                    {"digits": keys, "leg": "aleg"},
                    creates=True,
                )

    # text messages

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        given: dict[str, Parameter] = {
            "src": strip_plus(choose_sender(order, self.settings.sender_ids)),
            "dst": strip_plus(order.to_number),
            "text": order.body,
            "type": "mms" if order.media_urls else "sms",
            "url": f"{order.callbacks.events}/{paths.TEXT}",
            "method": "POST",
        }
        if order.media_urls:
            given["media_urls"] = list(order.media_urls)
        sent = (await self._client.post("Message/", PlivoMessage, given, creates=True)).message_uuid
        if not sent:
            raise OutcomeUnknown("Plivo did not return the id of the text message")
        return sent[0]

    async def find_text_status(self, carrier_text_id: str) -> TextMessageStatus | None:
        """Retrieve the message (https://www.plivo.com/docs/sms/api/message/retrieve-a-message)."""
        path = f"Message/{_require_id(carrier_text_id, 'text message')}/"
        text = await self._client.get(path, PlivoTextRecord)
        cost = float(text.total_amount) if text.total_amount else None
        return translate_plivo_text_status(
            carrier_text_id, text.message_state, text.error_code or "", segments=text.units, cost=cost
        )

    async def fetch_media(self, url: str) -> MessageFile:
        """Stream a file with the account's credential, which goes to no address but Plivo's."""
        if not url.startswith(f"{MEDIA}/"):
            raise ProviderError("the file is not at Plivo", retryable=False)
        moved = f"{self._base_url.rstrip('/')}{urlsplit(url).path}" if self._base_url else url
        client, http = self._require_open()
        return await stream_carrier_media(CarrierFiles(http, self.title, client.session, client.headers), moved)

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        return await stock.search_plivo_numbers(self._client, country, area_code, limit)

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        return await stock.buy_plivo_number(self._client, self.settings, order)

    async def release_number(self, carrier_number_id: str) -> None:
        with ignore_missing():
            await self._client.delete(f"Number/{carrier_number_id}/")

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        raise UnsupportedRequest("on Plivo, the platform records calls")

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        raise UnsupportedRequest("on Plivo, calls come from telephones only")


def _format_call_path(carrier_call_id: str) -> str:
    """Return the path of a call. Raises `ProviderError` for any other text: without an id, Plivo ends all calls of the
    account (https://www.plivo.com/docs/voice/api/call/hangup-a-call).
    """
    return f"Call/{_require_id(carrier_call_id, 'call')}/"


def _require_id(text: str, noun: str) -> str:
    if not ID.fullmatch(text):
        raise ProviderError(f"not an id of a {noun} at Plivo", retryable=False)
    return text
