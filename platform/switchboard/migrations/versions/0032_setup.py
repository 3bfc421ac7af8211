"""The time of a provider's last successful check, and the time when owners dismissed the setup list."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0028"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("provider_configuration", sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("organization", sa.Column("setup_dismissed_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("grant update (setup_dismissed_at) on organization to switchboard_tenant")
