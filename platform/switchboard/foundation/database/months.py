"""The months of the history (docs/decisions/0028-history-by-month.md)."""

from sqlmodel import func, select

from switchboard.foundation.database.session import Database


async def keep_months(database: Database) -> None:
    """Create the months of the history ahead of time, and drop those without rows."""
    async with database.system() as session:
        await session.exec(select(func.keep_months()))
