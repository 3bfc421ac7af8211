"""Automations, their runs, and what pulls their triggers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0007"
down_revision = "0006"

AUTHOR = "ck_sms_message_author"


def upgrade() -> None:
    op.create_table(
        "event_trigger",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_trigger_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_trigger")),
    )
    op.create_index(op.f("ix_event_trigger_organization_id_event"), "event_trigger", ["organization_id", "event"])
    op.create_table(
        "automation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("trigger_type", sa.Text(), nullable=False),
        sa.Column("trigger_filters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("conditions", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("actions", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.Column("last_run_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_automation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_automation_organization_id_id")),
    )
    op.create_index(
        op.f("ix_automation_organization_id_created_at_id"), "automation", ["organization_id", "created_at", "id"]
    )
    op.create_table(
        "automation_run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("trigger_event", sa.Text(), nullable=False),
        sa.Column("event", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("actions", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('running', 'completed', 'failed', 'skipped')", name=op.f("ck_automation_run_status")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_automation_run_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "automation_id"],
            ["automation.organization_id", "automation.id"],
            name=op.f("fk_automation_run_organization_id_automation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_run")),
        sa.UniqueConstraint(
            "organization_id",
            "automation_id",
            "event_id",
            name=op.f("uq_automation_run_organization_id_automation_id_event_id"),
        ),
    )
    op.create_index(
        op.f("ix_automation_run_organization_id_automation_id_created_at_id"),
        "automation_run",
        ["organization_id", "automation_id", "created_at", "id"],
    )
    op.create_index(
        "ix_automation_run_due", "automation_run", ["due_at"], postgresql_where=sa.text("due_at is not null")
    )
    op.create_index(
        "ix_automation_run_over",
        "automation_run",
        ["completed_at"],
        postgresql_where=sa.text("completed_at is not null"),
    )
    op.add_column("event", sa.Column("depth", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("event", sa.Column("triggered", postgresql.ARRAY(sa.Uuid()), nullable=False, server_default="{}"))
    op.add_column("event", sa.Column("trigger_due_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_event_trigger_due", "event", ["trigger_due_at"], postgresql_where=sa.text("trigger_due_at is not null")
    )
    for table in ("call", "campaign_contact", "sms_message"):
        op.add_column(table, sa.Column("cause_depth", sa.Integer(), nullable=False, server_default="0"))
    op.drop_constraint(op.f(AUTHOR), "sms_message", type_="check")
    op.create_check_constraint(
        op.f(AUTHOR), "sms_message", "author in ('contact', 'api', 'agent', 'automation', 'platform')"
    )
    protect("event_trigger")
    protect("automation")
    protect("automation_run", system="select, delete")
    op.execute("grant update (trigger_due_at) on event to switchboard_tenant")


def downgrade() -> None:
    op.execute("revoke update (trigger_due_at) on event from switchboard_tenant")
    op.execute("update sms_message set author = 'api' where author = 'automation'")
    op.drop_constraint(op.f(AUTHOR), "sms_message", type_="check")
    op.create_check_constraint(op.f(AUTHOR), "sms_message", "author in ('contact', 'api', 'agent', 'platform')")
    for table in ("call", "campaign_contact", "sms_message"):
        op.drop_column(table, "cause_depth")
    op.drop_index("ix_event_trigger_due", "event")
    for column in ("trigger_due_at", "triggered", "depth"):
        op.drop_column("event", column)
    for table in ("automation_run", "automation", "event_trigger"):
        op.drop_table(table)
