"""Contacts and the do-not-call list."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect

revision = "contacts"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "do_not_call_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint("source in ('api', 'text', 'call')", name=op.f("ck_do_not_call_entry_source")),
        sa.ForeignKeyConstraint(["organization_id"], ["organization.id"], name=op.f("fk_do_not_call_entry_organization_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_do_not_call_entry")),
        sa.UniqueConstraint("organization_id", "phone_number", name=op.f("uq_do_not_call_entry_organization_id_phone_number")),
    )
    op.create_index(
        op.f("ix_do_not_call_entry_organization_id_created_at_id"), "do_not_call_entry", ["organization_id", "created_at", "id"], unique=False
    )
    protect("do_not_call_entry")


def downgrade() -> None:
    op.drop_table("do_not_call_entry")
