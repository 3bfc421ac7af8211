"""Indexes that are built while the table is in use."""

from collections.abc import Sequence

from alembic import op
from sqlalchemy import text


def create_index_concurrently(
    name: str,
    table: str,
    columns: Sequence[str],
    *,
    include: Sequence[str] = (),
    method: str = "btree",
    predicate: str | None = None,
) -> None:
    """Create an index without a lock that writers wait for, outside of the migration's transaction.

    It waits for the transactions that are open, however long they take, and delays no other transaction. The remains of
    an interrupted attempt are dropped first (PostgreSQL manual, CREATE INDEX, "Building Indexes Concurrently"), so the
    migration may be run again; it must do nothing else.
    """
    condition = f" where {predicate}" if predicate else ""
    included = f" include ({', '.join(include)})" if include else ""
    with op.get_context().autocommit_block():
        lock_timeout = op.get_bind().execute(text("show lock_timeout")).scalar_one()
        op.execute("set lock_timeout = 0")
        op.execute(f"drop index concurrently if exists {name}")
        op.execute(
            f"create index concurrently {name} on {table} using {method} ({', '.join(columns)}){included}{condition}"
        )
        op.execute(f"set lock_timeout = '{lock_timeout}'")
