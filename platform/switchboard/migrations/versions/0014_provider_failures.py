"""Failures of providers during a call."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column(
        "call",
        sa.Column("provider_failures", postgresql.JSONB(), nullable=False, server_default="[]"),
    )
