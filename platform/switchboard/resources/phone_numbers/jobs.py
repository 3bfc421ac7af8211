"""Scheduled jobs of phone numbers."""

from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import work_on_each
from switchboard.foundation.web.errors import ProviderFailed
from switchboard.plugin_sdk import ProviderError, TelephonyProvider
from switchboard.resources.phone_numbers import purchases, system_queries
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber

logger = structlog.get_logger()


async def repair_purchases(database: Database, buyer: purchases.NumberBuyer) -> None:
    """Finish purchases that a crash interrupted. The carrier reports a number that was already bought, so it is
    never paid for twice.
    """
    async with database.system() as session:
        unfinished = await system_queries.list_unfinished_purchases(session)

    async def complete(found: tuple[UUID, UUID]) -> None:
        organization_id, number_id = found
        async with database.tenant(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id)
        try:
            await buyer.complete_purchase(organization_id, number)
        except ProviderFailed as error:
            logger.warning("purchase still not finished", number_id=str(number_id), reason=error.detail)

    await work_on_each(unfinished, complete)


async def release_numbers(database: Database, providers: Providers) -> None:
    """Release the numbers whose billing period has ended."""
    async with database.system() as session:
        due = await system_queries.list_due_releases(session)

    async def release(found: tuple[UUID, UUID]) -> None:
        organization_id, number_id = found
        async with database.tenant(organization_id) as session:
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

    await work_on_each(due, release)


async def charge_rents(database: Database) -> None:
    """Charge the months that have started. A number that is being released ends with the month that is paid."""
    async with database.system() as session:
        due = await system_queries.list_due_rents(session)

    async def charge(found: tuple[UUID, UUID]) -> None:
        organization_id, number_id = found
        async with database.tenant(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
            await numbers.charge_due_months(session, number)

    await work_on_each(due, charge)
