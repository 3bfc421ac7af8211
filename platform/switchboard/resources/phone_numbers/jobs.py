"""Work on phone numbers."""

from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, try_lock_name
from switchboard.foundation.web.errors import ProviderFailed
from switchboard.foundation.work import Work
from switchboard.plugin_sdk import ProviderError, TelephonyProvider
from switchboard.resources.phone_numbers import purchases, queries
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber

logger = structlog.get_logger()


async def repair_purchase(
    database: Database, buyer: purchases.NumberBuyer, *, organization_id: UUID, number_id: UUID
) -> None:
    """Finish a purchase that a crash interrupted. The carrier reports a number that was already bought, so it is never
    paid for twice.
    """
    async with database.write(organization_id) as session:
        if not await try_lock_name(session, f"purchase {number_id}"):
            return  # another worker asks the carrier
        number = await session.get_one(PhoneNumber, number_id)
        if number.status != "provisioning":
            return
        try:
            await buyer.complete_purchase(organization_id, number)
        except ProviderFailed as error:
            logger.warning("purchase still not finished", number_id=str(number_id), reason=error.detail)


async def release_number(database: Database, providers: Providers, *, organization_id: UUID, number_id: UUID) -> None:
    """Release a number whose billing period has ended."""
    async with database.write(organization_id) as session:
        number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
        if number.status != "pending_release":
            return
        try:
            async with providers.use(organization_id, TelephonyProvider, number.carrier) as carrier:
                await carrier.release_number(number.carrier_number_id or "")
        except ProviderError as error:
            logger.warning("release refused, will be retried", number_id=str(number_id), reason=error.message)
            return
        number.status, number.sms_active = "released", False


async def charge_rent(database: Database, *, organization_id: UUID, number_id: UUID) -> None:
    """Charge the months that have started. A number that is being released ends with the month that is paid."""
    async with database.write(organization_id) as session:
        number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
        await numbers.charge_due_months(session, number)


WORK: Final = (
    Work(repair_purchase, queries.INTERRUPTED_PURCHASES, seconds=60, at_once=4),
    Work(release_number, queries.DUE_RELEASES, seconds=60, at_once=4),
    Work(charge_rent, queries.DUE_RENTS, seconds=60, at_once=4),
)
