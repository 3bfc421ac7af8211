"""Entries of transcripts that were not finished."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("transcript_line", sa.Column("unfinished", sa.Boolean(), server_default="false", nullable=False))
