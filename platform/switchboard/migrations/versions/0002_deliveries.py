"""Targets of events, deliveries and their attempts, integrations.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_target",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        sa.Column("previous_secret_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("consecutive_failures", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('endpoint', 'agent', 'integration')", name=op.f("ck_event_target_kind")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_target_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_target")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_event_target_organization_id_id")),
    )
    op.create_index(
        op.f("ix_event_target_organization_id_created_at"), "event_target", ["organization_id", "created_at"]
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("target_id", sa.Uuid(), nullable=False),
        sa.Column("target_kind", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("last_status_code", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("replayed_from_id", sa.Uuid(), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("status in ('pending', 'delivered', 'failed')", name=op.f("ck_delivery_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_delivery_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_delivery_organization_id_id")),
        # Rows change a few times and then never again: room on the page keeps them there, and the dead ones are swept early.
        postgresql_with={"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.02},
    )
    op.create_index(
        "ix_delivery_due", "delivery", ["target_id", "due_at"], postgresql_where=sa.text("status = 'pending'")
    )
    op.create_index(
        op.f("ix_delivery_organization_id_created_at_id"), "delivery", ["organization_id", "created_at", "id"]
    )
    op.create_index(
        op.f("ix_delivery_organization_id_target_id_created_at_id"),
        "delivery",
        ["organization_id", "target_id", "created_at", "id"],
    )
    op.create_table(
        "delivery_attempt",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id", "delivery_id"],
            ["delivery.organization_id", "delivery.id"],
            name=op.f("fk_delivery_attempt_organization_id_delivery_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "delivery_id", "number", name=op.f("pk_delivery_attempt")),
    )
    op.create_table(
        "integration",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("partner_api_key", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_integration_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_integration")),
    )
    # An agent's secret moves as it is: what it is bound to (`agent|webhook_secret|…`) stays the same.
    op.execute(
        """
        insert into event_target (id, organization_id, created_at, kind, url, events, enabled, secret, consecutive_failures, updated_at)
        select id, organization_id, now(), 'agent', webhook_url, '{}', true, webhook_secret, 0, now() from agent
        where webhook_url is not null or webhook_secret is not null
        """
    )
    op.drop_column("agent", "webhook_secret")
    op.add_column("event", sa.Column("watch_due_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("update event set watch_due_at = created_at where watched_at is null")
    op.drop_index("ix_event_unwatched", "event")
    op.drop_column("event", "watched_at")
    op.create_index(
        "ix_event_unwatched", "event", ["watch_due_at"], postgresql_where=sa.text("watch_due_at is not null")
    )
    # Kept answers are encrypted from now on.
    op.execute("delete from idempotency_record")

    protect("event_target", system="select, update")
    protect("delivery", system="select, update, delete", tenant="select, insert, update")
    protect("delivery_attempt", system="select, insert", tenant="select")
    protect("integration")
    op.execute("grant delete on event to switchboard_system")


def downgrade() -> None:
    op.drop_index("ix_event_unwatched", "event")
    op.add_column("event", sa.Column("watched_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("update event set watched_at = created_at where watch_due_at is null")
    op.drop_column("event", "watch_due_at")
    op.create_index("ix_event_unwatched", "event", ["created_at"], postgresql_where=sa.text("watched_at is null"))
    op.add_column("agent", sa.Column("webhook_secret", sa.Text(), nullable=True))
    op.execute(
        "update agent set webhook_secret = event_target.secret from event_target where event_target.id = agent.id"
    )
    for table in ("integration", "delivery_attempt", "delivery", "event_target"):
        op.drop_table(table)
