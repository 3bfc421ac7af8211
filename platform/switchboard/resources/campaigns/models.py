"""Tables of campaigns and their contacts."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, index_due, json_column, now, refer_to
from switchboard.foundation.web.row_counts import RowCounter

OPEN: Final = ("draft", "scheduled", "running", "paused")
"""Statuses of a campaign that accepts new contacts."""
IN_FLIGHT: Final = ("dialing", "in_progress")
"""Statuses of a contact that is being called."""


class Campaign(TenantTable, table=True):
    """A campaign, with the API's Campaign fields and the dialer's state.

    The counters always equal the contacts' rows: `called` counts contacts that were dialed at least once, `in_flight`
    those that are being called, the others count contacts in that status. `due_at` is when the dialer next looks at the
    campaign; None if it need not. `recent` holds a letter for each of the last calls since the start or resumption,
    oldest first: `f` for a failed call, `-` for any other.
    """

    __tablename__ = "campaign"
    __row_counter__ = RowCounter()
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        index_due("ix_campaign_due", "due_at"),
        Index("ix_campaign_under_way", "organization_id", postgresql_where=text("status in ('scheduled', 'running')")),
        CheckConstraint(
            "status in ('draft', 'scheduled', 'running', 'paused', 'completed', 'canceled', 'failed')", name="status"
        ),
    )

    name: str
    agent_id: UUID
    phone_number_id: UUID
    status: str = "draft"
    status_reason: str | None = None
    scheduled_at: datetime | None = None
    max_concurrent: int
    retry: dict[str, Any] | None = json_column(None)
    voicemail_policy: dict[str, Any] | None = json_column(None)
    total_contacts: int = 0
    called: int = 0
    in_flight: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    canceled: int = 0
    recent: str = ""
    due_at: datetime | None = None
    updated_at: datetime = Field(default_factory=now)


class CampaignContact(TenantTable, table=True):
    """A contact of a campaign, with the API's Campaign contact fields.

    `dial_at` is the earliest time to dial a pending contact, `attempts` the number of dials, `call_id` the last call.
    `cause_depth` is the length of the automation chain that added the contact; its calls inherit it.
    """

    __tablename__ = "campaign_contact"
    __row_counter__ = RowCounter("campaign_id")
    __table_args__ = (
        refer_to("campaign", "campaign_id"),
        Index(None, "organization_id", "campaign_id", "created_at", "id"),
        Index(
            "ix_campaign_contact_pending",
            "organization_id",
            "campaign_id",
            "dial_at",
            "id",
            postgresql_where=text("status = 'pending'"),
        ),
        Index(
            "ix_campaign_contact_in_flight",
            "organization_id",
            "campaign_id",
            postgresql_where=text("status in ('dialing', 'in_progress')"),
        ),
        Index(
            "uq_campaign_contact_number",
            "campaign_id",
            "phone_number",
            unique=True,
            postgresql_where=text("status <> 'skipped'"),
        ),
        CheckConstraint(
            "status in ('pending', 'dialing', 'in_progress', 'completed', 'failed', 'skipped', 'canceled')",
            name="status",
        ),
        CheckConstraint(
            (
                "outcome in ('answered', 'voicemail', 'busy', 'no-answer', 'failed', 'invalid_number', "
                "'do_not_call', 'canceled')"
            ),
            name="outcome",
        ),
    )

    campaign_id: UUID
    phone_number: str
    name: str | None = None
    status: str = "pending"
    outcome: str | None = None
    call_id: UUID | None = None
    error: str | None = None
    attempts: int = 0
    dial_at: datetime = Field(default_factory=now)
    called_at: datetime | None = None
    cause_depth: int = 0
