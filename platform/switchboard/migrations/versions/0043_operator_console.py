"""Suspended organizations, and the operator's support sessions in an organization."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0043"
down_revision = "0042"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("organization", sa.Column("suspended_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("organization", sa.Column("suspension_reason", sa.String(), nullable=True))
    op.add_column("organization", sa.Column("allows_support", sa.Boolean(), nullable=False, server_default="true"))
    # Owners decide about support sessions; only the operator suspends.
    op.execute("grant update (allows_support) on organization to switchboard_tenant")
    op.create_table(
        "support_session",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("user_email", sa.String(), nullable=False),
        sa.Column("browser_session_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_support_session_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_support_session_user_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["browser_session_id"],
            ["user_session.id"],
            name=op.f("fk_support_session_browser_session_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_support_session")),
    )
    op.create_index(
        op.f("ix_support_session_organization_id_created_at"), "support_session", ["organization_id", "created_at"]
    )
    op.create_index(op.f("ix_support_session_user_id"), "support_session", ["user_id"])
    op.create_index(op.f("ix_support_session_browser_session_id"), "support_session", ["browser_session_id"])
    protect_table("support_session", tenant="select", system="select, insert, update")
    op.execute("grant update (ended_at) on support_session to switchboard_tenant")
    # The operator's list of organizations: balances and costs, without notes and references.
    for table, columns in (
        ("account", "organization_id, balance"),
        ("ledger_entry", "organization_id, created_at, kind, amount"),
    ):
        op.execute(f"grant select ({columns}) on {table} to switchboard_system")
        op.execute(f"create policy system on {table} for select to switchboard_system using (true)")
