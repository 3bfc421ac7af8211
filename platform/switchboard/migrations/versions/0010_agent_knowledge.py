"""What agents know beyond their prompts, and what is to be found out in their calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    kind = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
    op.add_column("agent", sa.Column("knowledge_base_ids", kind, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("agent", sa.Column("extraction_schema", kind, nullable=True))
    op.alter_column("agent", "knowledge_base_ids", server_default=None)


def downgrade() -> None:
    op.drop_column("agent", "extraction_schema")
    op.drop_column("agent", "knowledge_base_ids")
