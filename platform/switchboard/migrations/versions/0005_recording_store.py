"""Format of a call's stored recording, and the next look of the reconciler for one that is not stored yet."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
oldest_program = "0001"


def upgrade() -> None:
    # The recordings of older versions, and of processes that still run one, are WAV files.
    op.add_column("call", sa.Column("recording_format", sa.Text(), server_default="wav", nullable=False))
    op.add_column("call", sa.Column("recording_due_at", sa.DateTime(timezone=True), nullable=True))
