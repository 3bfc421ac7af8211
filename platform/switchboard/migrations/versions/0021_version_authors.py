"""Who made a version of an agent."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.add_column("agent_version", sa.Column("made_by", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("agent_version", "made_by")
