"""Who waits for a call to be transferred to them."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.add_column("call", sa.Column("transfer_target", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("call", "transfer_target")
