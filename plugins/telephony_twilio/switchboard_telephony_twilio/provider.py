"""The carrier Twilio, over its own SDK."""

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

from aiohttp import encode_basic_auth
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
    ProviderError,
    ProviderSettings,
    PublicHttpClient,
    ReceivedCallback,
    RecordingStream,
    TelephonyCapabilities,
    TelephonyProvider,
    TextMessageStatus,
    UnsupportedRequest,
    WarmTransfer,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard.plugin_sdk.recordings import CarrierFiles, stream_carrier_media, stream_carrier_recording
from switchboard.plugin_sdk.retries import ignore_missing
from switchboard.plugin_sdk.sender_ids import choose_sender
from twilio.twiml import TwiML

from switchboard_telephony_twilio import callbacks as paths
from switchboard_telephony_twilio import markup, stock
from switchboard_telephony_twilio.codec import TwilioCodec
from switchboard_telephony_twilio.errors import CALL_OVER, call_twilio, require_sid, translate_call_error
from switchboard_telephony_twilio.settings import TwilioSettings
from switchboard_telephony_twilio.transport import TwilioHttpClient

API: Final = "https://api.twilio.com"
PROGRESS: Final = ["initiated", "ringing", "answered", "completed"]
TOKEN_SECONDS: Final = 3600


class TwilioTelephony(TelephonyProvider[TwilioSettings]):
    """Calls, media streams, text messages, phone numbers, recordings, and browser calls.

    The platform sends digits as tones in the call's audio, because Twilio's own method would end the media stream.
    """

    name: ClassVar[str] = "twilio"
    title: ClassVar[str] = "Twilio"
    Settings: ClassVar[type[ProviderSettings]] = TwilioSettings
    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities(
        warm_transfer=True, send_digits=False, max_media=10, client_calls=True
    )

    def __init__(self, settings: TwilioSettings) -> None:
        super().__init__(settings)
        self._token = settings.auth_token.get_secret_value()
        self._opened: tuple[TwilioHttpClient, Any, PublicHttpClient] | None = None

    async def open(self) -> None:
        await asyncio.to_thread(importlib.import_module, "twilio.rest")
        http = TwilioHttpClient(str(self.settings.base_url) if self.settings.base_url else None)
        client = await asyncio.to_thread(_client, self.settings.account_sid, self._token, http)
        self._opened = http, client, PublicHttpClient(self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            http, _, public_http = self._opened
            await http.close()
            await public_http.close()

    async def check(self) -> None:
        account = await call_twilio(self._client.api.accounts(self.settings.account_sid).fetch_async())
        if account.status != "active":
            raise ProviderError(f"the Twilio account is {account.status}", retryable=False)

    def _require_open(self) -> tuple[TwilioHttpClient, Any, PublicHttpClient]:
        if self._opened is None:
            raise ProviderError("Twilio is not open")
        return self._opened

    @property
    def _client(self) -> Any:
        return self._require_open()[1]

    def _locate_files(self, url: str) -> tuple[CarrierFiles, str]:
        """Return the access to files, and the URL of one of them at the server in use."""
        http, _, public_http = self._require_open()
        credential = {"Authorization": encode_basic_auth(self.settings.account_sid, self._token)}
        return CarrierFiles(public_http, self.title, http.session, credential), http.resolve_url(url)

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        return paths.translate_callback(request.path, paths.verify_twilio_signature(request, self._token))

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        match instruction:
            case ConnectMedia(media_url):
                return markup.reply_with(self._stream_markup(media_url, callbacks))
            case ForwardCall(to_number, caller_id):
                return markup.reply_with(markup.dial_destination(to_number, caller_id))
        return markup.reply_with(markup.reject_call(instruction.reason))

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return TwilioCodec(derive_stream_token(self._token, media_url))

    def _stream_markup(self, media_url: str, callbacks: CallbackUrls) -> TwiML:
        recorded_at = f"{callbacks.events}/{paths.RECORDING}" if self.settings.record_calls else None
        return markup.connect_stream(
            media_url, derive_stream_token(self._token, media_url), f"{callbacks.events}/{paths.STREAM}", recorded_at
        )

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        events = order.callbacks.events
        detection = {
            # `DetectMessageEnd` reports a machine only at the end of its greeting, to which the agent would talk.
            "machine_detection": "Enable",
            "async_amd": "true",
            "async_amd_status_callback": f"{events}/{paths.MACHINE}",
            "async_amd_status_callback_method": "POST",
        }
        try:
            call = await call_twilio(
                self._client.calls.create_async(
                    to=order.to_number,
                    from_=order.from_number,
                    twiml=str(self._stream_markup(order.media_url, order.callbacks)),
                    timeout=order.ring_seconds,
                    time_limit=order.max_duration_seconds,
                    status_callback=f"{events}/{paths.STATUS}",
                    status_callback_event=PROGRESS,
                    status_callback_method="POST",
                    **(detection if order.detect_machine else {}),
                )
            )
        except ProviderError as error:
            raise translate_call_error(error) from error.__cause__
        return require_sid(call.sid)

    async def find_call(self, reference: str) -> str | None:
        """Return None: Twilio stores no reference with a call.

        Its first callback, whose address names the call, reports the call before the platform needs to search for it.
        """
        return None

    async def hang_up(self, carrier_call_id: str) -> None:
        try:
            await call_twilio(self._client.calls(carrier_call_id).update_async(status="completed"))
        except ProviderError as error:
            if error.code not in CALL_OVER:
                raise

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        await call_twilio(
            self._client.calls(carrier_call_id).update_async(twiml=str(markup.dial_destination(to_number, caller_id)))
        )

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        question = markup.ask_for_key(
            f"{introduction.text} {introduction.prompt}",
            introduction.language,
            f"{callbacks.events}/{paths.INTRODUCED}",
        )
        call = await call_twilio(
            self._client.calls.create_async(
                to=introduction.to_number,
                from_=introduction.caller_id,
                twiml=str(question),
                timeout=introduction.ring_seconds,
                status_callback=f"{callbacks.events}/{paths.TARGET}",
                status_callback_event=["completed"],
                status_callback_method="POST",
            )
        )
        return require_sid(call.sid)

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        await call_twilio(
            self._client.calls(carrier_call_id).update_async(twiml=str(markup.join_conference(target_call_id)))
        )

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        raise UnsupportedRequest("on Twilio, digits are sent as tones in the call's audio")

    # text messages

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        sender = choose_sender(order, self.settings.sender_ids)
        # Only numbers join the messaging service.
        service = self.settings.messaging_service_sid if sender == order.from_number else None
        text = await call_twilio(
            self._client.messages.create_async(
                to=order.to_number,
                from_=sender,
                body=order.body,
                status_callback=f"{order.callbacks.events}/{paths.TEXT}",
                **({"media_url": list(order.media_urls)} if order.media_urls else {}),
                **({"messaging_service_sid": service} if service else {}),
            )
        )
        return require_sid(text.sid)

    async def find_text_status(self, carrier_text_id: str) -> TextMessageStatus | None:
        """Fetch the message (https://www.twilio.com/docs/messaging/api/message-resource)."""
        text = await call_twilio(self._client.messages(carrier_text_id).fetch_async())
        code = str(text.error_code or "")
        return paths.translate_twilio_text_status(carrier_text_id, str(text.status), code, text.error_message or "")

    async def fetch_media(self, url: str) -> MessageFile:
        """Stream a file with the account's credential, which goes to no address but Twilio's."""
        if not url.startswith(f"{API}/"):
            raise ProviderError("the file is not at Twilio", retryable=False)
        return await stream_carrier_media(*self._locate_files(url))

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        return await stock.search_twilio_numbers(self._client, country, area_code, limit)

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        return await stock.buy_twilio_number(self._client, self.settings, order)

    async def release_number(self, carrier_number_id: str) -> None:
        with ignore_missing():
            await call_twilio(self._client.incoming_phone_numbers(carrier_number_id).delete_async())

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        url = f"{API}/2010-04-01/Accounts/{self.settings.account_sid}/Recordings/{recording_id}.wav"
        return await stream_carrier_recording(*self._locate_files(url), byte_range)

    @property
    def has_browser_calling(self) -> bool:
        return self.settings.application_sid is not None

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        settings = self.settings
        if settings.api_secret is None:
            raise UnsupportedRequest("browser calling needs api_sid, api_secret and application_sid in the tenant file")
        from twilio.jwt.access_token import AccessToken
        from twilio.jwt.access_token.grants import VoiceGrant

        pushes = {"web": None, "ios": settings.ios_push_credential_sid, "android": settings.android_push_credential_sid}
        grant = VoiceGrant(
            incoming_allow=True, outgoing_application_sid=settings.application_sid, push_credential_sid=pushes[platform]
        )
        secret = settings.api_secret.get_secret_value()
        token = AccessToken(
            settings.account_sid, settings.api_sid, secret, grants=[grant], identity=identity, ttl=TOKEN_SECONDS
        )
        return BrowserToken(str(token.to_jwt()), identity, TOKEN_SECONDS, {"sdk": "twilio-voice"})


def _client(account_sid: str, auth_token: str, http: TwilioHttpClient) -> Any:
    """Create the SDK's client and import the parts in use.

    That takes a third of a second and 20 MB, which neither calls nor processes without Twilio should pay.
    """
    from twilio.rest import Client

    # The SDK would read region and edge from the environment, but an organization's settings are all that counts.
    client = Client(account_sid, auth_token, http_client=http, environment={"TWILIO_EDGE": ""})
    for name in ("calls", "messages", "incoming_phone_numbers", "available_phone_numbers"):
        getattr(client, name)
    client.pricing.v1.phone_numbers.countries  # noqa: B018  imports it
    client.messaging.v1.services  # noqa: B018  imports it
    return client
