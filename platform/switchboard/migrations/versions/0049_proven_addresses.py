"""E-mail addresses of users that are proven, and invitations whose link was shown."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
oldest_program = "0001"


def upgrade() -> None:
    # It is unknown how rows of older versions were made, so their addresses are not proven.
    op.add_column("user_account", sa.Column("email_verified_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("invitation", sa.Column("is_link_shown", sa.Boolean(), nullable=False, server_default="true"))
