"""Table of phone numbers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import TenantTable, encryption_label, index_due, json_column
from switchboard.foundation.web.row_counts import RowCounter

FORWARD_WEBHOOK_LABEL = "phone_number|forward_webhook_secret|{id}|{organization_id}"


class PhoneNumber(TenantTable, table=True):
    """A phone number. `inbound_agent_id` may name a deleted agent: the number then does not answer.

    `carrier` is the provider it was bought from, with the ids there of an address and of documents if its country
    demands them (`carrier_address`, `carrier_requirements`); `release_at` is the end of the billing period in which it
    was released; `billed_until` is the end of the last charged period.
    """

    __tablename__ = "phone_number"
    __row_counter__ = RowCounter(facets=("status",))
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        Index(
            "uq_phone_number_in_use",
            "phone_number",
            unique=True,
            postgresql_where=text("status in ('provisioning', 'active', 'pending_release')"),
        ),
        index_due("ix_phone_number_rent", "billed_until", "status = 'active'"),
        index_due("ix_phone_number_provisioning", "created_at", "status = 'provisioning'"),
        index_due("ix_phone_number_release", "release_at", "status = 'pending_release'"),
        CheckConstraint("status in ('provisioning', 'active', 'pending_release', 'released', 'failed')", name="status"),
    )

    phone_number: str
    friendly_name: str
    inbound_agent_id: UUID | None = Field(default=None, index=True)
    status: str = "provisioning"
    schedule: dict[str, Any] | None = json_column(None)
    sms_schedule: dict[str, Any] | None = json_column(None)
    forward_number: str | None = None
    forward_webhook_url: str | None = None
    forward_webhook_secret: str | None = Field(default=None, sa_column_kwargs=encryption_label(FORWARD_WEBHOOK_LABEL))
    sms_active: bool = False
    carrier: str
    carrier_number_id: str | None = None
    carrier_address: str | None = None
    carrier_requirements: str | None = None
    monthly_cost: float = 0.0
    release_at: datetime | None = None
    billed_until: datetime | None = None


class CarrierReference(SQLModel, table=True):
    """The id by which a carrier knows a call or a text message. Triggers write it when the call or message has one, and
    delete it with them.
    """

    __tablename__ = "carrier_reference"
    __table_args__ = (CheckConstraint("kind in ('call', 'text')", name="kind"),)

    organization_id: UUID = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    carrier_id: str = Field(primary_key=True)
    carrier: str = Field(primary_key=True)
    subject_id: UUID
