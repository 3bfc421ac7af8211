"""Indexes that are built while the table is in use."""

from collections.abc import Sequence

from alembic import op


def create_index_concurrently(name: str, table: str, columns: Sequence[str], *, where: str | None = None) -> None:
    """Create an index without a lock that writers wait for, outside of the migration's transaction.

    What an interrupted attempt left is dropped first (PostgreSQL manual, CREATE INDEX, "Building Indexes
    Concurrently"), so the migration may be run again. Use it as the last operation of a migration.
    """
    condition = f" where {where}" if where else ""
    with op.get_context().autocommit_block():
        op.execute(f"drop index concurrently if exists {name}")
        op.execute(f"create index concurrently {name} on {table} ({', '.join(columns)}){condition}")
