"""The carrier's side of a live call: actions that the conversation asks for, checked and translated."""

from dataclasses import dataclass

from switchboard.engine.conversation.call import SpeechRenderer
from switchboard.engine.conversation.transfer import get_accept_prompt
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import CallbackUrls, ProviderError, ProviderSettings, TelephonyProvider, WarmTransfer
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.dialing import build_call_callback_urls
from switchboard.resources.calls.models import Call
from switchboard.resources.destinations.clients import build_carrier_destination, find_transfer_refusal


@dataclass(frozen=True, slots=True)
class ProviderCarrierLeg:
    """Carrier leg of a call (`CarrierLeg` of the engine)."""

    settings: Settings
    database: Database
    registry: Registry
    call: Call
    carrier: TelephonyProvider[ProviderSettings]

    async def hang_up(self) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("hang_up", self.carrier.name):
            await self.carrier.hang_up(carrier_call_id)

    async def transfer(self, to_number: str) -> None:
        if not self.carrier.capabilities.transfer:
            raise ProviderError(f"{self.carrier.title} cannot transfer calls", retryable=False)
        await self._check_target(to_number)
        carrier_call_id = await self._carrier_call_id()
        with span_request("transfer", self.carrier.name):
            await self.carrier.transfer(
                carrier_call_id,
                to_number=build_carrier_destination(self.call.organization_id, to_number),
                caller_id=calls.choose_caller_id(self.call, to_number),
                callbacks=self._callbacks,
            )

    async def introduce(self, to_number: str, text: str, language: str, render: SpeechRenderer) -> str:
        capabilities, prompt = self.carrier.capabilities, get_accept_prompt(language)
        if not capabilities.warm_transfer:
            raise ProviderError(
                f"{self.carrier.title} can transfer calls without an introduction only", retryable=False
            )
        await self._check_target(to_number)
        introduction = WarmTransfer(
            build_carrier_destination(self.call.organization_id, to_number),
            calls.get_own_number(self.call),
            text,
            prompt,
            language,
            speech=b"" if capabilities.speaks else await render(f"{text} {prompt}"),
        )
        carrier_call_id = await self._carrier_call_id()
        with span_request("start_warm_transfer", self.carrier.name):
            return await self.carrier.start_warm_transfer(carrier_call_id, introduction, self._callbacks)

    async def connect(self, target_call_id: str) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("complete_warm_transfer", self.carrier.name):
            await self.carrier.complete_warm_transfer(carrier_call_id, target_call_id)

    async def hang_up_target(self, target_call_id: str) -> None:
        with span_request("hang_up", self.carrier.name):
            await self.carrier.hang_up(target_call_id)

    async def send_digits(self, digits: str) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("send_digits", self.carrier.name):
            await self.carrier.send_digits(carrier_call_id, digits)

    async def _check_target(self, destination: str) -> None:
        """Check the target of a transfer like any number that is called: the model, or the caller, chooses it."""
        async with self.database.tenant(self.call.organization_id) as session:
            refusal = await find_transfer_refusal(session, self.registry, self.call.carrier, destination)
        if refusal is not None:
            raise ProviderError(refusal.detail, retryable=False)

    @property
    def _callbacks(self) -> CallbackUrls:
        return build_call_callback_urls(
            self.settings,
            carrier=self.call.carrier,
            organization_id=self.call.organization_id,
            call_id=self.call.id,
        )

    async def _carrier_call_id(self) -> str:
        """Return the carrier's id, which a callback may bring after the carrier has opened the media socket."""
        if self.call.carrier_call_id is None:
            async with self.database.tenant(self.call.organization_id) as session:
                self.call.carrier_call_id = (await calls.get_call(session, self.call.id)).carrier_call_id
        if self.call.carrier_call_id is None:
            raise ProviderError("the carrier has not reported the call's id yet")
        return self.call.carrier_call_id
