"""Names of users in transcripts."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0038"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("transcript_line", sa.Column("person", sa.Text(), nullable=True))
