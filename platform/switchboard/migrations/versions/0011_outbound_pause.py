"""Pauses of an organization's calls and text messages."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0011"
down_revision = "0010"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "outbound_pause",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("limit_name", sa.String(), nullable=False),
        sa.Column("limit_value", sa.Float(), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_outbound_pause_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", name=op.f("pk_outbound_pause")),
    )
    protect_table("outbound_pause", tenant="select, insert, update")
