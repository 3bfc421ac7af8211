"""The carrier Telnyx, over its own SDK.

Calls use Call Control: requests control a call, and webhooks report its progress.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from string import ascii_letters
from string import digits as decimal_digits
from typing import Any, ClassVar, Final, Literal
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from switchboard.plugin_sdk import (
    ACCEPT_PROMPTS,
    ACCEPT_SECONDS,
    AvailableNumber,
    BoughtNumber,
    BrowserCall,
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
    TextEncoding,
    TextMessageStatus,
    UnsupportedRequest,
    WarmTransfer,
    find_client_identity,
)
from switchboard.plugin_sdk.languages import find_nearest_language
from switchboard.plugin_sdk.recordings import CarrierFiles, stream_carrier_media, stream_carrier_recording
from switchboard.plugin_sdk.retries import ignore_missing
from switchboard.plugin_sdk.sender_ids import choose_sender

from switchboard_telephony_telnyx import stock
from switchboard_telephony_telnyx.callbacks import (
    AskTarget,
    ForwardAnsweredCall,
    HangUpCall,
    TextPayload,
    translate_telnyx_text_status,
    translate_webhook,
    verify_telnyx_signature,
)
from switchboard_telephony_telnyx.codec import TelnyxCodec
from switchboard_telephony_telnyx.credentials import TOKEN_SECONDS, create_credential_token, find_client_address
from switchboard_telephony_telnyx.errors import ignore_ended_call, require_created_id, translate_dial_error
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, digest_media_url, read_state, write_state
from switchboard_telephony_telnyx.transport import call_telnyx, create_client, read_telnyx

LEAST_RING_SECONDS: Final = 5
LEAST_CALL_SECONDS: Final = 30
FORWARD_RING_SECONDS: Final = 30
VOICE: Final = "female"
LANGUAGES: Final = (
    "en-US", "en-GB", "en-AU", "en-IN", "en-GB-WLS", "es-US", "es-ES", "es-MX", "de-DE", "fr-FR", "fr-CA", "pt-BR",
    "pt-PT", "arb", "cmn-CN", "cy-GB", "da-DK", "hi-IN", "is-IS", "it-IT", "ja-JP", "ko-KR", "nb-NO", "nl-NL", "pl-PL",
    "ro-RO", "ru-RU", "sv-SE", "tr-TR",
)  # fmt: skip
"""Languages of Telnyx's basic voices, the default variant of each language first. For any other, no language is sent.
"""
CODECS: Final = "PCMU,PCMA"
"""G.711 only: with another codec of the caller's, Telnyx streams in that one."""
EXTENSION: Final = frozenset("~^|\\{}[]")
BASIC: Final = frozenset(f"{decimal_digits}{ascii_letters}\n\r !\"#$%&'()*+,-./:;<=>?@_£¥èéùìòØøÅåÆæßÉ¡ÄÖÑÜ§¿äöñüà")
"""Telnyx's encoding of text messages: a part of GSM 03.38, and at most ten segments
(https://developers.telnyx.com/docs/messaging/messages/message-encoding, read in November 2026).
"""
REASONS: Final = {"rejected": "CALL_REJECTED", "busy": "USER_BUSY"}


class TelnyxTelephony(TelephonyProvider[TelnyxSettings]):
    """Calls, media streams, text messages, phone numbers, recordings, and browser calls."""

    name: ClassVar[str] = "telnyx"
    title: ClassVar[str] = "Telnyx"
    Settings: ClassVar[type[ProviderSettings]] = TelnyxSettings
    capabilities: ClassVar[TelephonyCapabilities] = TelephonyCapabilities(
        warm_transfer=True, max_media=10, client_calls=True
    )
    text_encoding: ClassVar[TextEncoding] = TextEncoding(BASIC, EXTENSION, max_segments=10)

    def __init__(self, settings: TelnyxSettings) -> None:
        super().__init__(settings)
        self._api_key = settings.api_key.get_secret_value()
        self._opened: tuple[Any, PublicHttpClient] | None = None

    async def open(self) -> None:
        base_url = str(self.settings.base_url) if self.settings.base_url else None
        client = await asyncio.to_thread(create_client, self._api_key, base_url)
        self._opened = client, PublicHttpClient(self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            client, http = self._opened
            await client.close()
            await http.close()

    async def check(self) -> None:
        application = await read_telnyx(
            lambda: self._client.call_control_applications.retrieve(self.settings.connection_id)
        )
        if application.active is False:
            raise ProviderError("the Telnyx application is not active", retryable=False)

    def _require_open(self) -> tuple[Any, PublicHttpClient]:
        if self._opened is None:
            raise ProviderError("Telnyx is not open")
        return self._opened

    @property
    def _client(self) -> Any:
        return self._require_open()[0]

    @property
    def _files(self) -> CarrierFiles:
        return CarrierFiles(self._require_open()[1], self.title)

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        body = verify_telnyx_signature(request, self.settings.public_key)
        result = translate_webhook(self.settings, body, request.url)
        if result.command is not None:
            await self._execute(result.command)
        return ReceivedCallback(() if result.event is None else (result.event,))

    async def _execute(self, command: HangUpCall | ForwardAnsweredCall | AskTarget) -> None:
        """Execute the command of a webhook. If it fails for good, end the call, which is reported as such."""
        try:
            match command:
                case HangUpCall():
                    await self.hang_up(command.call_id)
                case ForwardAnsweredCall(call_id, to_number, caller_id):
                    await self._transfer(call_id, to_number, caller_id, key="forward")
                case AskTarget(call_id, text, language):
                    await self._ask_for_key(call_id, text, find_nearest_language(language, LANGUAGES))
        except ProviderError as error:
            if error.retryable or isinstance(command, HangUpCall):
                raise
            await self.hang_up(command.call_id)

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        call_id = call.carrier_call_id
        with ignore_ended_call():
            if isinstance(instruction, ConnectMedia):
                state = CallState(call_id=call_id, media=digest_media_url(instruction.media_url))
                await self._answer(call_id, state, **self._stream_options(instruction.media_url))
            elif isinstance(instruction, ForwardCall):
                # Only an answered call can be transferred; the webhook of the answer triggers the transfer.
                to_number, caller_id = instruction.to_number, instruction.caller_id
                await self._answer(call_id, CallState(call_id=call_id, forward_to=to_number, caller_id=caller_id))
            elif isinstance(call, BrowserCall):
                await self.hang_up(call_id)
            else:
                await self._command(call_id, "reject", key="reject", cause=REASONS[instruction.reason])
        return CallbackReply()

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return TelnyxCodec(self._api_key, media_url)

    def _stream_options(self, media_url: str) -> dict[str, object]:
        """Return the options that connect a call's audio: mu-law in both directions, only the person's audio toward
        us.
        """
        recorded = {"record": "record-from-answer", "record_channels": "dual", "record_format": "wav"}
        return {
            "stream_url": media_url,
            "stream_track": "inbound_track",
            "stream_codec": "PCMU",
            "stream_bidirectional_mode": "rtp",
            "stream_bidirectional_codec": "PCMU",
            "stream_bidirectional_target_legs": "self",
            "send_silence_when_idle": True,
            **(recorded if self.settings.record_calls else {}),
        }

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        state = CallState(reference=order.reference, media=digest_media_url(order.media_url))
        given: dict[str, object] = {
            "connection_id": self.settings.connection_id,
            "to": order.to_number,
            "from_": order.from_number,
            "command_id": _derive_command_id(order.reference, "dial"),
            "client_state": write_state(self._api_key, state),
            "webhook_url": order.callbacks.events,
            "timeout_secs": max(LEAST_RING_SECONDS, order.ring_seconds),
            "time_limit_secs": max(LEAST_CALL_SECONDS, order.max_duration_seconds),
            "preferred_codecs": CODECS,
            **self._stream_options(order.media_url),
        }
        if order.detect_machine:
            given["answering_machine_detection"] = "greeting_end" if order.await_greeting_end else "detect"
        try:
            return await self._dial(given)
        except ProviderError as error:
            raise translate_dial_error(error, order.to_number) from error.__cause__

    async def find_call(self, reference: str) -> str | None:
        """Search the application's live calls for the reference in their state.

        An ended call was reported by its webhooks, whose address names the call.
        """

        async def look() -> str | None:
            async for call in self._client.connections.list_active_calls(self.settings.connection_id):
                if read_state(self._api_key, call.client_state).reference == reference:
                    return str(call.call_control_id)
            return None

        return await call_telnyx(look)

    async def hang_up(self, carrier_call_id: str) -> None:
        with ignore_ended_call():
            await self._command(carrier_call_id, "hangup")

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        await self._transfer(carrier_call_id, to_number, caller_id)
        await self._stop_streaming(carrier_call_id)

    async def start_warm_transfer(
        self, carrier_call_id: str, introduction: WarmTransfer, callbacks: CallbackUrls
    ) -> str:
        state = CallState(introduction=f"{introduction.text} {introduction.prompt}", language=introduction.language)
        given: dict[str, object] = {
            "connection_id": self.settings.connection_id,
            "to": await self._find_address(introduction.to_number),
            "from_": introduction.caller_id,
            "client_state": write_state(self._api_key, state),
            "webhook_url": callbacks.events,
            "timeout_secs": max(LEAST_RING_SECONDS, introduction.ring_seconds),
            "preferred_codecs": CODECS,
        }
        return await self._dial(given)

    async def _dial(self, given: dict[str, object]) -> str:
        call = await call_telnyx(lambda: self._client.calls.dial(**given), creates=True)
        return require_created_id(call, "call_control_id")

    async def complete_warm_transfer(self, carrier_call_id: str, target_call_id: str) -> None:
        """Bridge the two calls. When either party hangs up, Telnyx ends the other call: neither is parked."""
        left = write_state(self._api_key, CallState(call_id=carrier_call_id, transferred=True))
        await self._command(carrier_call_id, "bridge", call_control_id_to_bridge_with=target_call_id, client_state=left)
        await self._stop_streaming(carrier_call_id)

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        await self._command(carrier_call_id, "send_dtmf", digits=digits)

    async def _command(self, call_id: str, action: str, *, key: str = "", **options: object) -> None:
        """Send a command, an action of the SDK, that may be repeated: Telnyx executes a command id once per call.

        `key` makes the id permanent, for a command that a repeated webhook would trigger twice. Raises `ProviderError`.
        """
        options["command_id"] = _derive_command_id(call_id, key or uuid4().hex)
        await call_telnyx(lambda: getattr(self._client.calls.actions, action)(call_id, **options))

    async def _stop_streaming(self, call_id: str) -> None:
        # The platform closes the socket anyway.
        with suppress(ProviderError):
            await self._command(call_id, "stop_streaming")

    async def _ask_for_key(self, call_id: str, text: str, language: str | None) -> None:
        """Ask the target of a transfer for a key
        (https://developers.telnyx.com/api-reference/call-commands/gather-using-speak).
        """
        await self._command(
            call_id,
            "gather_using_speak",
            key="ask",
            payload=text,
            voice=VOICE,
            **({"language": language} if language is not None else {}),
            maximum_digits=1,
            maximum_tries=ACCEPT_PROMPTS,
            timeout_millis=ACCEPT_SECONDS * 1000,
        )

    async def _answer(self, call_id: str, state: CallState, **streamed: object) -> None:
        signed = write_state(self._api_key, state)
        await self._command(call_id, "answer", key="answer", client_state=signed, preferred_codecs=CODECS, **streamed)

    async def _transfer(self, call_id: str, to_number: str, caller_id: str, *, key: str = "") -> None:
        await self._command(
            call_id,
            "transfer",
            key=key,
            to=await self._find_address(to_number),
            from_=caller_id,
            client_state=write_state(self._api_key, CallState(call_id=call_id, transferred=True)),
            target_leg_client_state=write_state(self._api_key, CallState(leg_of=call_id)),
            timeout_secs=FORWARD_RING_SECONDS,
        )

    async def _find_address(self, to_number: str) -> str:
        """Return a phone number, or the SIP address of a client."""
        identity = find_client_identity(to_number)
        if identity is None:
            return to_number
        connection_id = self._require_browser_connection()
        return await find_client_address(self._client.telephony_credentials, connection_id, identity)

    def _require_browser_connection(self) -> str:
        if self.settings.credential_connection_id is None:
            raise UnsupportedRequest("browser calling needs credential_connection_id in the tenant file")
        return self.settings.credential_connection_id

    # text messages

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        sender = choose_sender(order, self.settings.sender_ids)
        given = {
            "from_": sender,
            # A number is in a profile; an alphanumeric sender is not.
            **({"messaging_profile_id": self.settings.messaging_profile_id} if sender != order.from_number else {}),
            "to": order.to_number,
            "text": order.body,
            "webhook_url": order.callbacks.events,
            **({"media_urls": list(order.media_urls)} if order.media_urls else {}),
        }
        text = await call_telnyx(lambda: self._client.messages.send(**given, use_profile_webhooks=False), creates=True)
        return require_created_id(text, "id")

    async def find_text_status(self, carrier_text_id: str) -> TextMessageStatus | None:
        """Retrieve a message (https://developers.telnyx.com/api-reference/messages/retrieve-a-message)."""
        text = await read_telnyx(lambda: self._client.messages.retrieve(carrier_text_id))
        return translate_telnyx_text_status(msgspec.convert(text.to_dict(), TextPayload, strict=False))

    async def fetch_media(self, url: str) -> MessageFile:
        """Stream a file. Telnyx stores it at an address that expires and needs no credential."""
        return await stream_carrier_media(self._files, url)

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        return await stock.search_telnyx_numbers(self._client, country, area_code, limit)

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        return await stock.buy_telnyx_number(self._client, self.settings, order)

    async def release_number(self, carrier_number_id: str) -> None:
        with ignore_missing():
            await call_telnyx(lambda: self._client.phone_numbers.delete(carrier_number_id))

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        """Stream a recording, found by its leg id.

        Telnyx stores it at an address that is valid for some minutes and needs no credential.
        """
        wanted = {"call_leg_id": recording_id}
        found = await read_telnyx(lambda: self._client.recordings.list(filter=wanted))
        url = next((one.download_urls.wav or one.download_urls.mp3 for one in found if one.download_urls), None)
        if not url:
            raise ProviderError("Telnyx does not have the recording, or no longer has it", code="404", retryable=False)
        return await stream_carrier_recording(self._files, url, byte_range)

    @property
    def has_browser_calling(self) -> bool:
        return self.settings.credential_connection_id is not None

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        connection_id = self._require_browser_connection()
        token = await create_credential_token(self._client.telephony_credentials, connection_id, identity)
        return BrowserToken(token, identity, TOKEN_SECONDS, {"sdk": "telnyx-webrtc"})


def _derive_command_id(subject: str, key: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"telnyx:{subject}:{key}"))
