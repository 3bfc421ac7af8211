"""The oldest schema whose programs work with the present one, for programs that are older than the schema."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table("schema_compatibility", sa.Column("oldest_program", sa.Text(), nullable=False))
