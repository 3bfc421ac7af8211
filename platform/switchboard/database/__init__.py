"""PostgreSQL: transactions bound to one organization, and the columns that tables share. Knows no table."""

from switchboard.database.columns import TenantTable, json_column, new_id, now
from switchboard.database.session import Database, after_commit

__all__ = ["Database", "TenantTable", "after_commit", "json_column", "new_id", "now"]
