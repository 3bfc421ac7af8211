"""Index of the calls whose recording is not stored yet."""

from switchboard.migrations.indexes import create_index_concurrently

revision = "0006"
down_revision = "0005"
oldest_program = "0001"


def upgrade() -> None:
    create_index_concurrently(
        "ix_call_recording_due", "call", ["recording_due_at"], predicate="recording_due_at is not null"
    )
