"""Turn detection of an agent. Existing agents keep ending turns by silence alone."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column(
        "agent",
        sa.Column(
            "turn_detection",
            postgresql.JSONB(),
            # Also for agents that a program of the previous version creates.
            server_default=sa.text(
                """'{"mode": "silence", "min_silence_seconds": 0.2, "max_silence_seconds": 2.0}'::jsonb"""
            ),
            nullable=False,
        ),
    )
