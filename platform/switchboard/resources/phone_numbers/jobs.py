"""Scheduled jobs of phone numbers."""

import structlog

from switchboard.foundation.web.errors import ProviderFailed
from switchboard.plugin_sdk import ProviderError, TelephonyProvider
from switchboard.resources.phone_numbers import purchases, rent, system_queries
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.runtime import Runtime

logger = structlog.get_logger()


async def repair_purchases(runtime: Runtime) -> None:
    """Finish purchases that a crash interrupted. The carrier reports a number that was already bought, so it is
    never paid for twice.
    """
    async with runtime.database.system() as session:
        unfinished = await system_queries.list_unfinished_purchases(session)
    for organization_id, number_id in unfinished:
        async with runtime.database.tenant(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id)
        try:
            buyer = purchases.NumberBuyer(runtime.database, runtime.providers, runtime.settings.base_url)
            await buyer.complete_purchase(organization_id, number)
        except ProviderFailed as error:
            logger.warning("purchase still not finished", number_id=str(number_id), reason=error.detail)


async def release_numbers(runtime: Runtime) -> None:
    """Release the numbers whose billing period has ended."""
    async with runtime.database.system() as session:
        due = await system_queries.list_due_releases(session)
    for organization_id, number_id in due:
        async with runtime.database.tenant(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
            if number.status != "pending_release":
                continue
            try:
                async with runtime.providers.use(organization_id, TelephonyProvider, number.carrier) as carrier:
                    await carrier.release_number(number.carrier_number_id or "")
            except ProviderError as error:
                logger.warning("release refused, will be retried", number_id=str(number_id), reason=error.message)
                continue
            number.status, number.sms_active = "released", False


async def charge_rents(runtime: Runtime) -> None:
    """Charge the months that have started. A number that is being released ends with the month that is paid."""
    async with runtime.database.system() as session:
        due = await system_queries.list_due_rents(session)
    for organization_id, number_id in due:
        async with runtime.database.tenant(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
            await rent.charge_due_months(session, number)
