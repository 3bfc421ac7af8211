"""PostgreSQL access: typed transactions under two roles, and the columns that tables share. Knows no table."""

from switchboard.foundation.database.columns import TenantTable, json_column, new_id, now
from switchboard.foundation.database.session import Database, SystemSession, TenantSession, after_commit

__all__ = ["Database", "SystemSession", "TenantSession", "TenantTable", "after_commit", "json_column", "new_id", "now"]
