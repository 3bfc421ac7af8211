"""What a call's analysis costs is an entry of its own: it comes when the call has been charged already."""

from alembic import op

revision = "0012"
down_revision = "0011"

KINDS = "kind in ({})"
NAME = op.f("ck_ledger_entry_kind")


def upgrade() -> None:
    op.drop_constraint(NAME, "ledger_entry")
    op.create_check_constraint(NAME, "ledger_entry", KINDS.format("'call', 'analysis', 'text', 'number', 'credit'"))


def downgrade() -> None:
    op.execute("delete from ledger_entry where kind = 'analysis'")
    op.drop_constraint(NAME, "ledger_entry")
    op.create_check_constraint(NAME, "ledger_entry", KINDS.format("'call', 'text', 'number', 'credit'"))
