"""The tools that agents declare."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    kind = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
    op.add_column("agent", sa.Column("tools", kind, nullable=False, server_default=sa.text("'[]'")))
    op.alter_column("agent", "tools", server_default=None)


def downgrade() -> None:
    op.drop_column("agent", "tools")
