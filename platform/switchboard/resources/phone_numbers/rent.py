"""Monthly cost of phone numbers, from the day of purchase."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID, uuid5

from switchboard.foundation.database import TenantSession, now
from switchboard.resources.billing import ledger
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import find_period_end


async def get_monthly_price(session: TenantSession) -> Decimal:
    """Return the price of a month of a number, in US dollars."""
    return Decimal(str((await get_policy(session, session.organization_id)).prices.number_month))


async def charge_due_months(session: TenantSession, number: PhoneNumber) -> None:
    """Charge the months that have started since the last charge. Rent may take a prepaid balance below zero."""
    while number.billed_until is not None and number.billed_until <= now():
        await ledger.settle_hold(
            session, "number", build_month_reference(number.id, number.billed_until), await get_monthly_price(session)
        )
        number.billed_until = find_period_end(number.created_at, number.billed_until)


def build_month_reference(number_id: UUID, begins: datetime) -> UUID:
    """Build the ledger reference of a month of a number, which is charged once."""
    return uuid5(number_id, begins.isoformat())
