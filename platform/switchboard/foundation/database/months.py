"""The months of the history (docs/decisions/0028-history-by-month.md)."""

from sqlmodel import SQLModel, func, select

from switchboard.foundation.database.session import Database


async def keep_months(database: Database) -> None:
    """Create the months of the history ahead of time, and drop those without rows.

    Each table is a transaction of its own, so that no lock on one is held while another one waits for its readers.
    """
    for name, table in SQLModel.metadata.tables.items():
        if table.dialect_options["postgresql"]["partition_by"]:
            async with database.system() as session:
                await session.exec(select(func.keep_months(name)))
