"""Jobs of phone numbers."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, SystemSession, try_lock_name
from switchboard.foundation.jobs import work_on_each
from switchboard.foundation.web.errors import ProviderFailed
from switchboard.plugin_sdk import ProviderError, TelephonyProvider
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import list_due_releases, list_due_rents, list_interrupted_purchases

logger = structlog.get_logger()


async def repair_purchases(database: Database, buyer: purchases.NumberBuyer) -> None:
    """Finish purchases that a crash interrupted. The carrier reports a number that was already bought, so it is
    never paid for twice.
    """

    async def complete(organization_id: UUID, number_id: UUID) -> None:
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

    await _work_on_due(database, list_interrupted_purchases, complete)


async def release_numbers(database: Database, providers: Providers) -> None:
    """Release the numbers whose billing period has ended."""

    async def release(organization_id: UUID, number_id: UUID) -> None:
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

    await _work_on_due(database, list_due_releases, release)


async def charge_rents(database: Database) -> None:
    """Charge the months that have started. A number that is being released ends with the month that is paid."""

    async def charge(organization_id: UUID, number_id: UUID) -> None:
        async with database.write(organization_id) as session:
            number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
            await numbers.charge_due_months(session, number)

    await _work_on_due(database, list_due_rents, charge)


async def _work_on_due(
    database: Database,
    list_numbers: Callable[[SystemSession], Awaitable[Sequence[tuple[UUID, UUID]]]],
    work: Callable[[UUID, UUID], Awaitable[None]],
) -> None:
    """Work on each number that is due, by its organization and its id."""
    async with database.system() as session:
        found = await list_numbers(session)
    await work_on_each(found, lambda number: work(*number))
