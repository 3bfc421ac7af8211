"""What embeddings outside conversations and simulations cost is in the ledger."""

from alembic import op

revision = "0018"
down_revision = "0017"

KINDS = "kind in ({})"
NAME = op.f("ck_ledger_entry_kind")


def upgrade() -> None:
    op.drop_constraint(NAME, "ledger_entry")
    kinds = "'call', 'analysis', 'text', 'number', 'embedding', 'simulation', 'credit'"
    op.create_check_constraint(NAME, "ledger_entry", KINDS.format(kinds))


def downgrade() -> None:
    op.execute("delete from ledger_entry where kind in ('embedding', 'simulation')")
    op.drop_constraint(NAME, "ledger_entry")
    op.create_check_constraint(NAME, "ledger_entry", KINDS.format("'call', 'analysis', 'text', 'number', 'credit'"))
