"""Numbers that an agent's model may choose, and the tools that are switched off."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("agent", sa.Column("disabled_tools", JSONB(), server_default="[]", nullable=False))
    op.add_column("agent", sa.Column("allowed_numbers", JSONB(), server_default="[]", nullable=False))
    op.add_column("agent", sa.Column("any_number", sa.Boolean(), server_default=sa.false(), nullable=False))
