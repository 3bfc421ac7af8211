"""Tones of notices, and checks of providers that failed."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("user_session", sa.Column("notice_tone", sa.Text(), nullable=False, server_default="done"))
    op.add_column("provider_configuration", sa.Column("check_failed_at", sa.DateTime(timezone=True), nullable=True))
