"""Requests of persons for a copy of their data, or for its erasure."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect_table

revision = "0018"
down_revision = "0017"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "privacy_request",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("sealed_number", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("report", postgresql.JSONB(), nullable=False),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("file_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('export', 'erase')", name=op.f("ck_privacy_request_kind")),
        sa.CheckConstraint(
            "status in ('queued', 'running', 'completed', 'failed')", name=op.f("ck_privacy_request_status")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_privacy_request_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_privacy_request")),
    )
    op.create_index(
        op.f("ix_privacy_request_organization_id_created_at_id"),
        "privacy_request",
        ["organization_id", "created_at", "id"],
    )
    op.create_index(
        "ix_privacy_request_due", "privacy_request", ["due_at"], postgresql_where=sa.text("due_at is not null")
    )
    protect_table("privacy_request", tenant="select, insert, update", system="select")
