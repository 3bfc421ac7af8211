"""Redaction of an agent's conversations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("agent", sa.Column("redaction", postgresql.JSONB(), nullable=True))
