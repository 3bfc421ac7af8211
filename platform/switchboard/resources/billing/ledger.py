"""The ledger: each cost and top-up is an entry, and the balance is their sum. A prepaid organization's money is held
before it is spent, so it cannot go into debt.

All changes of an organization's balance happen under the lock of its account row, in the transaction of what is paid
for.
"""

from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, func
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import NewRow, TenantSession, insert_row, now, run_statement
from switchboard.foundation.encryption.content import get_table
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.resources.billing.models import Account, LedgerEntry, LedgerHold
from switchboard.resources.destinations.service import HOUR, pause_at_limit
from switchboard.resources.identity.service import get_policy

_holds = get_table(LedgerHold)
_RELEASE = delete(_holds).where(
    _holds.c.organization_id == bindparam("organization_id"), _holds.c.id == bindparam("reference")
)
Spending = Literal["call", "analysis", "text", "number", "embedding", "simulation"]


async def hold_funds(session: TenantSession, reference: UUID, amount: Decimal) -> None:
    """Hold `amount` in total for something that starts or continues. Raises `InsufficientBalance`.

    Does nothing for a postpaid organization.
    """
    if (await get_policy(session, session.organization_id)).billing_mode != "prepaid":
        return
    account = await _lock_account(session)
    if account.balance - await _set_aside(session, col(LedgerHold.id) != reference) < amount:
        raise InsufficientBalance
    row = LedgerHold(id=reference, organization_id=account.organization_id, amount=amount).model_dump()
    await session.exec(
        insert(LedgerHold).values(row).on_conflict_do_update(index_elements=["id"], set_={"amount": amount})
    )


async def require_solvency(session: TenantSession) -> None:
    """Refuse usage that is charged afterwards if a prepaid organization's balance is negative. Raises
    `InsufficientBalance`.
    """
    if (await get_policy(session, session.organization_id)).billing_mode != "prepaid":
        return
    if (await get_account_balance(session))[0] < await _set_aside(session):
        raise InsufficientBalance


async def settle_hold(session: TenantSession, kind: Spending, reference: UUID, amount: Decimal) -> bool:
    """Release a hold and charge the actual cost; repeated calls change nothing. Return whether this call charged it."""
    organization_id = session.organization_id
    account = await _lock_account(session) if amount else None
    await run_statement(session, _RELEASE, {"organization_id": organization_id, "reference": reference})
    if account is None:
        return False
    entry = NewRow.build(LedgerEntry, organization_id=organization_id, kind=kind, amount=-amount, reference=reference)
    if not await insert_row(session, entry):
        return False
    account.balance -= amount
    account.updated_at = now()
    spent = select(func.sum(-col(LedgerEntry.amount))).where(
        session.owns(LedgerEntry), col(LedgerEntry.created_at) > now() - HOUR, col(LedgerEntry.kind) != "credit"
    )
    await pause_at_limit(session, "spend_per_hour", spent)
    return True


async def correct_charge(session: TenantSession, kind: Spending, amount: Decimal, *, note: str) -> None:
    """Charge the difference between a cost and its estimate, which is negative if the estimate was too high.

    Entries are immutable, so a correction is an entry of its own. The caller must make it once.
    """
    account = await _lock_account(session)
    session.add(LedgerEntry(organization_id=account.organization_id, kind=kind, amount=-amount, note=note))
    account.balance -= amount
    account.updated_at = now()


async def credit_account(session: TenantSession, amount: Decimal, *, note: str = "") -> Decimal:
    """Top up an organization, or charge it with a negative amount; return the new balance."""
    account = await _lock_account(session)
    session.add(LedgerEntry(organization_id=account.organization_id, kind="credit", amount=amount, note=note))
    account.balance += amount
    account.updated_at = now()
    return account.balance


async def get_account_balance(session: TenantSession) -> tuple[Decimal, datetime | None]:
    """Return the sum of all entries, and the time of the last one."""
    rows = session.select(Account)
    account = (await session.exec(rows)).one_or_none()
    return (account.balance, account.updated_at) if account else (Decimal(0), None)


def list_ledger_entries(session: TenantSession) -> SelectOfScalar[LedgerEntry]:
    """Select the organization's ledger entries."""
    return session.select(LedgerEntry)


async def _set_aside(session: TenantSession, *conditions: ColumnElement[bool]) -> Decimal:
    rows = select(func.coalesce(func.sum(col(LedgerHold.amount)), 0)).where(session.owns(LedgerHold))
    return (await session.exec(rows.where(*conditions))).one()


async def _lock_account(session: TenantSession) -> Account:
    organization_id = session.organization_id
    await insert_row(session, NewRow.build(Account, id=organization_id, organization_id=organization_id))
    rows = select(Account).where(col(Account.id) == organization_id).with_for_update()
    return (await session.exec(rows.execution_options(populate_existing=True))).one()
