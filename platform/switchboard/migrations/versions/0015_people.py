"""Signing in: sessions of browsers, invitations, what guessing costs."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("user_account", sa.Column("failed_sign_ins", sa.Integer(), nullable=False, server_default="0"))
    op.alter_column("user_account", "failed_sign_ins", server_default=None)
    op.add_column("user_account", sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "user_session",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=True),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_user_session_organization_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_user_session_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_user_session_token_hash")),
    )
    op.create_index(op.f("ix_user_session_user_id"), "user_session", ["user_id"])
    protect("user_session", tenant="", system="select, insert, update, delete")
    op.create_table(
        "invitation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role in ('owner', 'member')", name=op.f("ck_invitation_role")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_invitation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("organization_id", "email", name=op.f("uq_invitation_organization_id_email")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitation_token_hash")),
    )
    protect("invitation", system="select, insert, update, delete")


def downgrade() -> None:
    op.drop_table("invitation")
    op.drop_table("user_session")
    op.drop_column("user_account", "locked_until")
    op.drop_column("user_account", "failed_sign_ins")
