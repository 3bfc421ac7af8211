"""The part of a message's cost that its carrier can correct; null for messages that an older program charged."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0021"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("sms_message", sa.Column("text_cost", sa.Numeric(14, 6), nullable=True))
