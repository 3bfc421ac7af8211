"""Passkeys of users."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0045"
down_revision = "0043"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "passkey",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_passkey_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkey")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkey_credential_id")),
    )
    op.create_index(op.f("ix_passkey_user_id"), "passkey", ["user_id"])
    op.create_table(
        "used_passkey_challenge",
        sa.Column("challenge_hash", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("challenge_hash", name=op.f("pk_used_passkey_challenge")),
    )
    op.create_index(op.f("ix_used_passkey_challenge_expires_at"), "used_passkey_challenge", ["expires_at"])
    protect_table("passkey", tenant="", system="select, insert, update, delete")
    protect_table("used_passkey_challenge", tenant="", system="select, insert, delete")
