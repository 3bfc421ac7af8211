"""Statements of the operator's command line that are no resource's."""

from typing import Final

from sqlalchemy import text

from switchboard.foundation.database import SystemSession

_PRIVILEGES: Final = text(
    "select current_user, rolsuper or rolbypassrls,"
    " (select count(*) from pg_class where relforcerowsecurity and not relispartition)"
    " from pg_roles where rolname = current_user"
)


async def read_privileges(session: SystemSession) -> tuple[str, bool, int]:
    """Return the role, whether it may bypass row-level security, and the number of tables on which that is forced."""
    ((role, may_bypass, tables),) = await session.fetch(_PRIVILEGES)
    return role, may_bypass, tables
