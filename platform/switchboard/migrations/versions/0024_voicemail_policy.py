"""Voicemail policy of agents, campaigns, and calls. Existing agents keep hanging up on machines."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column(
        "agent",
        sa.Column(
            "voicemail_policy",
            postgresql.JSONB(),
            # Also for agents that a program of the previous version creates.
            server_default=sa.text(
                """'{"action": "hang_up", "message": "", "prompt": "", "carrier_detection": true}'::jsonb"""
            ),
            nullable=False,
        ),
    )
    op.add_column("campaign", sa.Column("voicemail_policy", postgresql.JSONB(), nullable=True))
    op.add_column("call", sa.Column("voicemail_policy", postgresql.JSONB(), nullable=True))
