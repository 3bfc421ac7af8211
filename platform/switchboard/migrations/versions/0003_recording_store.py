"""Format of a call's stored recording, and when the reconciler looks for a recording that is not stored yet."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # The recordings of older versions, and of processes that still run one, are WAV files.
    op.add_column("call", sa.Column("recording_format", sa.Text(), server_default="wav", nullable=False))
    op.add_column("call", sa.Column("recording_due_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_call_recording_due", "call", ["recording_due_at"], postgresql_where=sa.text("recording_due_at is not null")
    )
