"""Quality of a call's line; and which organizations have a provider, for the processes that serve its accounts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0047"
down_revision = "0046"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("call", sa.Column("quality", postgresql.JSONB(), nullable=True))
    # Policy `system` exists since 0004. The settings themselves are read as each organization.
    op.execute("grant select (capability, name, updated_at) on provider_configuration to switchboard_system")
