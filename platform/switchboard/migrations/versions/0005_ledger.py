"""The ledger: accounts, entries, holds."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("balance", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_account_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
    )
    op.create_table(
        "ledger_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("reference", sa.Uuid(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint("kind in ('call', 'text', 'number', 'credit')", name=op.f("ck_ledger_entry_kind")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_ledger_entry_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entry")),
    )
    op.create_index(
        op.f("ix_ledger_entry_organization_id_created_at"), "ledger_entry", ["organization_id", "created_at"]
    )
    op.create_index(
        "uq_ledger_entry_reference",
        "ledger_entry",
        ["organization_id", "kind", "reference"],
        unique=True,
        postgresql_where=sa.text("reference is not null"),
    )
    op.create_table(
        "ledger_hold",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("amount", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_ledger_hold_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_hold")),
    )
    op.create_index(op.f("ix_ledger_hold_organization_id"), "ledger_hold", ["organization_id"])
    op.create_index(op.f("ix_sms_message_organization_id_created_at"), "sms_message", ["organization_id", "created_at"])
    op.add_column("phone_number", sa.Column("billed_until", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_phone_number_rent", "phone_number", ["billed_until"], postgresql_where=sa.text("status = 'active'")
    )
    # What calls have cost so far is in the ledger from the start, so that the balance is the sum of everything.
    op.execute(
        """
        insert into ledger_entry (id, organization_id, created_at, kind, amount, reference, note)
        select gen_random_uuid(), organization_id, ended_at, 'call', -cost_total, id, '' from call where ended_at is not null and cost_total <> 0
        """
    )
    op.execute(
        """
        insert into ledger_entry (id, organization_id, created_at, kind, amount, reference, note)
        select gen_random_uuid(), organization_id, created_at, 'text', -cost, id, '' from sms_message where cost <> 0
        """
    )
    op.execute(
        """
        insert into account (id, organization_id, created_at, balance, updated_at)
        select organization_id, organization_id, now(), sum(amount), now() from ledger_entry group by organization_id
        """
    )
    protect("account")
    protect("ledger_entry", tenant="select, insert")
    protect("ledger_hold")


def downgrade() -> None:
    op.drop_index("ix_phone_number_rent", "phone_number")
    op.drop_column("phone_number", "billed_until")
    op.drop_index(op.f("ix_sms_message_organization_id_created_at"), "sms_message")
    for table in ("ledger_hold", "ledger_entry", "account"):
        op.drop_table(table)
