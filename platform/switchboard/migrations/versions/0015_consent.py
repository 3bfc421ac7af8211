"""Disclosure of an agent, and notice and consent of a call."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("agent", sa.Column("disclosure", postgresql.JSONB(), nullable=True))
    op.add_column("call", sa.Column("consent", postgresql.JSONB(), nullable=True))
