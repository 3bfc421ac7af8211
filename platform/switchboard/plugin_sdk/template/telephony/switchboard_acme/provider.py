"""Acme as a carrier: calls, text messages, and phone numbers."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

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
    PublicHttpClient,
    ReceivedCallback,
    RecordingStream,
    TelephonyCapabilities,
    TelephonyProvider,
    UnsupportedRequest,
)
from switchboard.plugin_sdk.recordings import CarrierFiles, stream_carrier_media

from switchboard_acme.callbacks import read_callback, translate
from switchboard_acme.client import AcmeProvider, AcmeSettings
from switchboard_acme.codec import AcmeCodec

NOT_FOUND = "404"


class AcmeTelephony(AcmeProvider, TelephonyProvider[AcmeSettings]):
    """The carrier. It keeps no state: what it needs later is in Acme's ids."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings
    capabilities = TelephonyCapabilities(recordings=False, machine_detection=False, browser_calling=False)

    @cached_property
    def _files(self) -> PublicHttpClient:
        return PublicHttpClient(self.network_policy)

    async def close(self) -> None:
        await super().close()
        await self._files.close()

    # callbacks and media

    async def receive(self, request: CallbackRequest) -> ReceivedCallback:
        event = read_callback(self.settings.api_key.get_secret_value(), request)
        return ReceivedCallback(translate(event), CallbackReply(b"{}", "application/json"))

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CallbackReply:
        match instruction:
            case ConnectMedia(media_url):
                reply = {"connect": media_url, "callback_url": callbacks.events}
            case ForwardCall(to_number, caller_id):
                reply = {"forward": to_number, "caller_id": caller_id}
            case _:
                reply = {"reject": instruction.reason}
        return CallbackReply(json.dumps(reply).encode(), "application/json")

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return AcmeCodec()

    # calls

    async def place_call(self, order: OutboundCall) -> str:
        body = {
            "reference": order.reference,
            "from": order.from_number,
            "to": order.to_number,
            "media_url": order.media_url,
            "callback_url": order.callbacks.events,
            "ring_seconds": order.ring_seconds,
            "max_seconds": order.max_duration_seconds,
        }
        return str((await self._client.request("POST", "/calls", creates=True, json=body))["id"])

    async def find_call(self, reference: str) -> str | None:
        calls = await self._client.request("GET", "/calls", params={"reference": reference})
        return str(calls[0]["id"]) if calls else None

    async def hang_up(self, carrier_call_id: str) -> None:
        await self._delete(f"/calls/{carrier_call_id}")

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        body = {"to": to_number, "caller_id": caller_id, "callback_url": callbacks.events}
        await self._client.request("POST", f"/calls/{carrier_call_id}/transfer", json=body)

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        await self._client.request("POST", f"/calls/{carrier_call_id}/digits", json={"digits": digits})

    # text messages and phone numbers

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        body = {
            "from": order.from_number,
            "to": order.to_number,
            "text": order.body,
            "callback_url": order.callbacks.events,
        }
        return str((await self._client.request("POST", "/messages", creates=True, json=body))["id"])

    async def fetch_media(self, url: str) -> MessageFile:
        """Stream a file from Acme's API, which may redirect to a storage. The credential goes to Acme alone."""
        if not url.startswith(str(self.settings.base_url)):
            raise ProviderError("the file is not at Acme", retryable=False)
        return await stream_carrier_media(CarrierFiles(self._files, self.title, self._client.session), url)

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        query = {"country": country, "area_code": area_code or "", "limit": limit}
        numbers = await self._client.request("GET", "/available-numbers", params=query)
        return [AvailableNumber(number["number"], number["number"], country) for number in numbers]

    async def buy_number(self, order: NumberOrder) -> BoughtNumber:
        """Buy a number. Acme returns a number that the account already has again, at no cost."""
        body = {"number": order.phone_number, "callback_url": order.callbacks.events}
        bought = await self._client.request("POST", "/numbers", json=body)
        return BoughtNumber(str(bought["id"]), order.phone_number)

    async def release_number(self, carrier_number_id: str) -> None:
        await self._delete(f"/numbers/{carrier_number_id}")

    # what Acme does not have

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        raise UnsupportedRequest(f"{self.title} has no recordings")

    async def create_browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        raise UnsupportedRequest(f"{self.title} has no calls from browsers")

    async def _delete(self, path: str) -> None:
        """Delete a resource, which may be gone already."""
        try:
            await self._client.request("DELETE", path)
        except ProviderError as error:
            if error.code != NOT_FOUND:
                raise
