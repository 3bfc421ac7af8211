"""Indexes of the filters of calls (one that has every filtered column, and the words of transcripts), and of the export
of text messages.
"""

from alembic import op
from switchboard.migrations.indexes import create_index_concurrently

revision = "0033"
down_revision = "0032"
oldest_program = "0001"


def upgrade() -> None:
    create_index_concurrently(
        "ix_call_filtered",
        "call",
        ["organization_id", "created_at", "id"],
        include=[
            "direction",
            "status",
            "agent_id",
            "ended_reason",
            "user_sentiment",
            "call_successful",
            "duration_seconds",
            "from_number",
            "to_number",
        ],
    )
    create_index_concurrently(
        "ix_transcript_line_words", "transcript_line", ["transcript_words(organization_id, content)"], method="gin"
    )
    create_index_concurrently(
        "ix_sms_message_organization_id_created_at_id", "sms_message", ["organization_id", "created_at", "id"]
    )
    with op.get_context().autocommit_block():
        # The first one has the same keys.
        op.execute("drop index concurrently if exists ix_call_organization_id_created_at_id")
