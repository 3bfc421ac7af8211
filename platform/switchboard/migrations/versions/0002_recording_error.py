"""Reason for which a call's recording was dropped."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("call", sa.Column("recording_error", sa.Text(), nullable=True))
