"""Id of the call, text message, or simulation that a delivery is about: its body may be encrypted."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("delivery", sa.Column("subject_id", sa.Uuid(), nullable=True))
