"""Search and purchase: the intent is committed, the carrier asked, the outcome committed. A scheduled job repairs
what a crash interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers, choose_provider
from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ProviderFailed
from switchboard.plugin_sdk import AvailableNumber, CallbackUrls, NumberOrder, ProviderError, TelephonyProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schemas import NumberSearch, PhoneNumberBuy

logger = structlog.get_logger()
SEARCH_LIMIT = 20


def build_callback_urls(base_url: str, organization_id: UUID, carrier: str) -> CallbackUrls:
    """Build the callback URLs of a carrier for an organization, for everything but its outbound calls."""
    return CallbackUrls(events=f"{base_url}/carriers/{carrier}/{organization_id}/events")


async def search_available_numbers(
    providers: Providers, organization_id: UUID, data: NumberSearch
) -> Sequence[AvailableNumber]:
    """Search phone numbers that the organization's first carrier sells. Raises `ProviderFailed` with the carrier's
    message.
    """
    try:
        async with providers.use(organization_id, TelephonyProvider) as carrier:
            return await carrier.search_numbers(country=data.country, area_code=data.area_code, limit=SEARCH_LIMIT)
    except ProviderError as error:
        raise ProviderFailed(error.message) from error


@dataclass(frozen=True, slots=True)
class NumberBuyer:
    database: Database
    providers: Providers
    settings: Settings

    async def buy_number(self, organization_id: UUID, data: PhoneNumberBuy, *, actor: str | None = None) -> PhoneNumber:
        """Buy a number. Raises `ValidationFailed`, `Conflict`, and `ProviderFailed` with the carrier's message."""
        async with self.database.write(organization_id, actor=actor) as session:
            carrier = await choose_provider(session, Capability.TELEPHONY, None, field="phone_number")
            number = await numbers.begin_purchase(session, data, carrier=carrier)
        return await self.complete_purchase(organization_id, number)

    async def complete_purchase(self, organization_id: UUID, number: PhoneNumber) -> PhoneNumber:
        """Ask the carrier for a number whose purchase has begun; safe to repeat. Raises `ProviderFailed`."""
        try:
            async with self.providers.use(organization_id, TelephonyProvider, number.carrier) as carrier:
                callbacks = build_callback_urls(self.settings.base_url, organization_id, number.carrier)
                bought = await carrier.buy_number(
                    NumberOrder(number.phone_number, callbacks, number.carrier_address, number.carrier_requirements)
                )
        except ProviderError as error:
            if not error.retryable:
                async with self.database.write(organization_id) as session:
                    await numbers.fail_purchase(session, number.id)
            raise ProviderFailed(error.message) from error
        async with self.database.write(organization_id) as session:
            return await numbers.finish_purchase(
                session, number.id, carrier_number_id=bought.carrier_number_id, sms=bought.sms
            )
