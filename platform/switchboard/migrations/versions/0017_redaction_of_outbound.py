"""The full text of a redacted message until it is sent, and what the model may see of a call's redacted metadata."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("sms_message", sa.Column("unsent_body", sa.String(), nullable=True))
    op.add_column("call", sa.Column("prompt_variables", postgresql.JSONB(), nullable=True))
