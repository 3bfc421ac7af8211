"""Failed attempts to sign in are counted by the rate limiter. The columns are dropped in the release after this one."""

from alembic import op
from sqlalchemy import text

revision = "0009"
down_revision = "0008"
oldest_program = "0001"


def upgrade() -> None:
    """Give the column that programs no longer write a default."""
    op.alter_column("user_account", "failed_sign_ins", server_default=text("0"))
