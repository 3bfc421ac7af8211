"""What numbers cost each month, from the day they were bought."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID, uuid5

from switchboard.foundation.database import TenantSession, now
from switchboard.resources.billing import ledger
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import next_period_end


async def price(session: TenantSession) -> Decimal:
    """A month of a number."""
    return Decimal(str((await get_policy(session, session.organization_id)).prices.number_month))


async def charge_due(session: TenantSession, number: PhoneNumber) -> None:
    """Charge the months that have begun since the last one charged. Rent is owed, so it may take a prepaid balance below zero."""
    while number.billed_until is not None and number.billed_until <= now():
        await ledger.settle_hold(
            session, "number", month_reference(number.id, number.billed_until), await price(session)
        )
        number.billed_until = next_period_end(number.created_at, number.billed_until)


def month_reference(number_id: UUID, begins: datetime) -> UUID:
    """What a month of a number is charged under, once."""
    return uuid5(number_id, begins.isoformat())
