"""Noise suppression of an agent, off unless it is chosen."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("agent", sa.Column("noise_suppression", sa.String(), server_default="off", nullable=False))
