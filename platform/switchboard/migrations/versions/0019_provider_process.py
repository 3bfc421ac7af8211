"""The process in which a provider runs."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
oldest_program = "0001"


def upgrade() -> None:
    # The program of the version before inserts rows without the column.
    op.add_column("provider_configuration", sa.Column("process", sa.Text(), nullable=False, server_default="shared"))
