"""Indexes for what retention deletes, and for failed deliveries and their replays."""

from switchboard.migrations.indexes import create_index_concurrently

revision = "0008"
down_revision = "0007"
oldest_program = "0001"


def upgrade() -> None:
    create_index_concurrently(
        "ix_call_recorded",
        "call",
        ["organization_id", "created_at"],
        predicate="has_recording or carrier_recording_id is not null",
    )
    create_index_concurrently(
        "ix_call_transcribed", "call", ["organization_id", "created_at"], predicate="has_transcript"
    )
    create_index_concurrently(
        "ix_automation_run_ended",
        "automation_run",
        ["organization_id", "completed_at"],
        predicate="completed_at is not null",
    )
    create_index_concurrently(
        "ix_delivery_failed",
        "delivery",
        ["organization_id", "target_id", "created_at", "id"],
        predicate="status = 'failed'",
    )
    create_index_concurrently(
        "ix_delivery_replayed",
        "delivery",
        ["organization_id", "replayed_from_id"],
        predicate="replayed_from_id is not null",
    )
