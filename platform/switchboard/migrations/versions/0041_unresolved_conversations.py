"""Index of the conversations that are not resolved."""

from switchboard.migrations.indexes import create_index_concurrently

revision = "0041"
down_revision = "0040"
oldest_program = "0001"


def upgrade() -> None:
    create_index_concurrently(
        "ix_sms_conversation_unresolved",
        "sms_conversation",
        ["organization_id", "last_inbound_at"],
        predicate="last_inbound_at is not null and resolved_at is null",
    )
