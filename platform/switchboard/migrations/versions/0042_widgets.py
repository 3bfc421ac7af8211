"""Website widgets and their sessions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect_table

revision = "0042"
down_revision = "0041"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "widget",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("demo_enabled", sa.Boolean(), nullable=False),
        sa.Column("allowed_origins", postgresql.JSONB(), nullable=False),
        sa.Column("text_enabled", sa.Boolean(), nullable=False),
        sa.Column("voice_enabled", sa.Boolean(), nullable=False),
        sa.Column("color", sa.String(), nullable=False),
        sa.Column("position", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("greeting", sa.String(), nullable=True),
        sa.Column("language", sa.String(), nullable=True),
        sa.Column("max_sessions_per_minute", sa.Integer(), nullable=False),
        sa.Column("max_sessions_per_minute_per_address", sa.Integer(), nullable=False),
        sa.Column("max_concurrent_sessions", sa.Integer(), nullable=False),
        sa.Column("max_spend_per_day", sa.Numeric(14, 6), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("position in ('left', 'right')", name=op.f("ck_widget_position")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_widget_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "agent_id"],
            ["agent.organization_id", "agent.id"],
            name=op.f("fk_widget_organization_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_widget")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_widget_organization_id_id")),
        sa.UniqueConstraint("public_key", name=op.f("uq_widget_public_key")),
    )
    op.create_index(
        op.f("ix_widget_organization_id_agent_id_created_at"), "widget", ["organization_id", "agent_id", "created_at"]
    )
    protect_table("widget", system="select")
    op.create_table(
        "widget_session",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("widget_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("answering_until", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_widget_session_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "widget_id"],
            ["widget.organization_id", "widget.id"],
            name=op.f("fk_widget_session_organization_id_widget_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "call_id"],
            ["call.organization_id", "call.id"],
            name=op.f("fk_widget_session_organization_id_call_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_widget_session")),
    )
    op.create_index(
        op.f("ix_widget_session_organization_id_widget_id_created_at"),
        "widget_session",
        ["organization_id", "widget_id", "created_at"],
    )
    op.create_index(op.f("ix_widget_session_organization_id_call_id"), "widget_session", ["organization_id", "call_id"])
    protect_table("widget_session")
