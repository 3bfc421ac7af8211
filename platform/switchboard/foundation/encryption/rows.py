"""Content of rows that are inserted around the session's flush, which encrypts that of objects."""

from switchboard.foundation.database import NewRow, TenantSession
from switchboard.foundation.encryption.content import encrypt_values, get_table


async def encrypt_row(session: TenantSession, row: NewRow) -> NewRow:
    """Return a row with its content encrypted if the organization's policy says so."""
    values = await session.run_sync(encrypt_values, get_table(row.table), row.values, dict(row.values))
    return NewRow(row.table, values)
