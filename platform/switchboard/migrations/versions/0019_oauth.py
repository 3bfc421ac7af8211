"""OAuth: what users granted applications, their tokens, and applications without a secret."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.alter_column("oauth_client", "secret_hash", nullable=True)
    op.create_table(
        "oauth_grant",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("membership_id", sa.Uuid(), nullable=True),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("code_challenge", sa.Text(), nullable=True),
        sa.Column("redeemed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_client.id"], name=op.f("fk_oauth_grant_client_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_oauth_grant_user_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["membership_id"], ["membership.id"], name=op.f("fk_oauth_grant_membership_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_oauth_grant_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_grant")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_oauth_grant_organization_id_id")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_oauth_grant_code_hash")),
    )
    whose = ["organization_id", "client_id", "user_id"]
    op.create_index(op.f("ix_oauth_grant_organization_id_client_id_user_id"), "oauth_grant", whose)
    for column in ("client_id", "user_id", "membership_id", "expires_at"):
        op.create_index(op.f(f"ix_oauth_grant_{column}"), "oauth_grant", [column])
    op.create_table(
        "oauth_token",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("grant_id", sa.Uuid(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("access_hash", sa.LargeBinary(), nullable=False),
        sa.Column("access_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("refresh_hash", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "grant_id"],
            ["oauth_grant.organization_id", "oauth_grant.id"],
            name=op.f("fk_oauth_token_organization_id_grant_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_oauth_token_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_token")),
        sa.UniqueConstraint("access_hash", name=op.f("uq_oauth_token_access_hash")),
        sa.UniqueConstraint("refresh_hash", name=op.f("uq_oauth_token_refresh_hash")),
    )
    op.create_index(op.f("ix_oauth_token_organization_id_grant_id"), "oauth_token", ["organization_id", "grant_id"])
    op.create_index(op.f("ix_oauth_token_expires_at"), "oauth_token", ["expires_at"])
    protect("oauth_grant", tenant="select", system="select, insert, update, delete")
    protect("oauth_token", tenant="select", system="select, insert, update, delete")


def downgrade() -> None:
    op.drop_table("oauth_token")
    op.drop_table("oauth_grant")
    op.execute("delete from oauth_client where secret_hash is null")
    op.alter_column("oauth_client", "secret_hash", nullable=False)
