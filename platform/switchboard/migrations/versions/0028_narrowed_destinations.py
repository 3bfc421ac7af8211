"""Destinations that owners close for their organization, besides those that its tenant file closes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0026"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("organization", sa.Column("narrowed_destinations", postgresql.JSONB(), nullable=True))
    # Of its own row, an organization changes this column alone.
    op.execute("grant update (narrowed_destinations) on organization to switchboard_tenant")
