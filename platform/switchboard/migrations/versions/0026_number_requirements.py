"""Ids of address and documents with which a phone number is bought."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("phone_number", sa.Column("carrier_address", sa.String(), nullable=True))
    op.add_column("phone_number", sa.Column("carrier_requirements", sa.String(), nullable=True))
