"""Tables of the ledger, and of the usage that retention would otherwise lose."""

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, text
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import Money, RecordTable, TenantTable, now


class Account(TenantTable, table=True):
    """The account of an organization, under the organization's id, created with its first entry. `balance` is the
    sum of its entries; the row is their lock.
    """

    __tablename__ = "account"

    balance: Decimal = Field(default=Decimal(0), sa_type=Money)
    updated_at: datetime = Field(default_factory=now)


class LedgerEntry(RecordTable, table=True):
    """A cost (negative) or a top-up (positive). Immutable; each (`kind`, `reference`) is charged once."""

    __tablename__ = "ledger_entry"
    __table_args__ = (
        Index(None, "organization_id", "created_at"),
        Index(
            "uq_ledger_entry_reference",
            "organization_id",
            "kind",
            "reference",
            unique=True,
            postgresql_where=text("reference is not null"),
        ),
        CheckConstraint(
            "kind in ('call', 'analysis', 'text', 'number', 'embedding', 'simulation', 'credit')", name="kind"
        ),
    )

    kind: str
    amount: Decimal = Field(sa_type=Money)
    reference: UUID | None = None
    note: str = ""


class LedgerHold(TenantTable, table=True):
    """Money of a prepaid organization held for something in progress, under the same id."""

    __tablename__ = "ledger_hold"
    __table_args__ = (Index(None, "organization_id"),)

    amount: Decimal = Field(sa_type=Money)


class DeletedUsage(SQLModel, table=True):
    """Usage of the calls and text messages that retention has deleted, by month in the organization's time zone.

    `month` is its first day; `seconds` are those of the calls, `sent` and `received` count text messages.
    """

    __tablename__ = "deleted_usage"

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    month: date = Field(primary_key=True)
    calls: int
    seconds: int = Field(sa_type=BigInteger)
    sent: int
    received: int
