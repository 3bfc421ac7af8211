"""Campaigns and whom they call."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0006"
down_revision = "0005"

STATUSES = "'draft', 'scheduled', 'running', 'paused', 'completed', 'canceled', 'failed'"
CONTACT_STATUSES = "'pending', 'dialing', 'in_progress', 'completed', 'failed', 'skipped', 'canceled'"
OUTCOMES = "'answered', 'voicemail', 'busy', 'no-answer', 'failed', 'invalid_number', 'do_not_call', 'canceled'"
COUNTERS = ("total_contacts", "called", "completed", "failed", "skipped", "canceled")


def upgrade() -> None:
    op.create_table(
        "campaign",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("phone_number_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("scheduled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("max_concurrent", sa.Integer(), nullable=False),
        sa.Column("retry", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        *(sa.Column(counter, sa.Integer(), nullable=False) for counter in COUNTERS),
        sa.Column("recent", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(f"status in ({STATUSES})", name=op.f("ck_campaign_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_campaign_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_campaign_organization_id_id")),
    )
    op.create_index(
        op.f("ix_campaign_organization_id_created_at_id"), "campaign", ["organization_id", "created_at", "id"]
    )
    op.create_index("ix_campaign_due", "campaign", ["due_at"], postgresql_where=sa.text("due_at is not null"))
    op.create_index(
        "ix_campaign_under_way",
        "campaign",
        ["organization_id"],
        postgresql_where=sa.text("status in ('scheduled', 'running')"),
    )
    op.create_table(
        "campaign_contact",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("dial_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("called_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(f"status in ({CONTACT_STATUSES})", name=op.f("ck_campaign_contact_status")),
        sa.CheckConstraint(f"outcome in ({OUTCOMES})", name=op.f("ck_campaign_contact_outcome")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_campaign_contact_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "campaign_id"],
            ["campaign.organization_id", "campaign.id"],
            name=op.f("fk_campaign_contact_organization_id_campaign_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign_contact")),
    )
    whose = ["organization_id", "campaign_id"]
    op.create_index(
        op.f("ix_campaign_contact_organization_id_campaign_id_created_at_id"),
        "campaign_contact",
        [*whose, "created_at", "id"],
    )
    op.create_index(
        "ix_campaign_contact_pending",
        "campaign_contact",
        [*whose, "dial_at", "id"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "ix_campaign_contact_in_flight",
        "campaign_contact",
        whose,
        postgresql_where=sa.text("status in ('dialing', 'in_progress')"),
    )
    op.create_index(
        "uq_campaign_contact_number",
        "campaign_contact",
        ["campaign_id", "phone_number"],
        unique=True,
        postgresql_where=sa.text("status <> 'skipped'"),
    )
    protect("campaign", system="select, update")
    protect("campaign_contact")


def downgrade() -> None:
    op.drop_table("campaign_contact")
    op.drop_table("campaign")
