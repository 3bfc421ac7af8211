"""Data subject requests: keys of organizations, numbers whose opt-out outlives their erasure, and privileges."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0013"
down_revision = "0012"
oldest_program = "0001"

# Texts that an erasure rewrites, and nothing else does.
ERASABLE = {"audit_entry": "subject", "ledger_entry": "note", "delivery_attempt": "error"}


def upgrade() -> None:
    op.create_table(
        "organization_key",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("wrapped", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_organization_key_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organization_key")),
    )
    op.create_index(
        op.f("ix_organization_key_organization_id_purpose"), "organization_key", ["organization_id", "purpose"]
    )
    protect_table("organization_key", system="select")
    op.create_table(
        "erased_number",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_erased_number_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_erased_number")),
        sa.UniqueConstraint("organization_id", "digest", name=op.f("uq_erased_number_organization_id_digest")),
    )
    protect_table("erased_number", tenant="select, insert, delete")
    # Entries of the audit log and of the ledger do not change, except for a number in them that is erased.
    for table, column in ERASABLE.items():
        op.execute(f"grant update ({column}) on {table} to switchboard_tenant")
        op.execute(
            f"create policy erasure on {table} as restrictive for update to switchboard_tenant "
            "using ((select current_setting('app.erasure', true)) = 'on')"
        )
