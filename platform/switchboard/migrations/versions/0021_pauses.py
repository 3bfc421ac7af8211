"""Pauses of the caller's turns and how they were judged, and words that did not stop the agent."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0021"
down_revision = "0020"
oldest_program = "0001"


def upgrade() -> None:
    # The program of the version before inserts rows without the columns.
    op.add_column("transcript_line", sa.Column("backchannel", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column(
        "transcript_line",
        sa.Column("pauses", postgresql.JSONB(), nullable=False, server_default=sa.text("'[]'::jsonb")),
    )
