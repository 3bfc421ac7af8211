"""Who has taken a call over, and what they said in it."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("call", sa.Column("taken_over_by", sa.Text(), nullable=True))
    op.add_column("call", sa.Column("taken_over_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("transcript_line", sa.Column("by_person", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("transcript_line", "by_person")
    op.drop_column("call", "taken_over_at")
    op.drop_column("call", "taken_over_by")
