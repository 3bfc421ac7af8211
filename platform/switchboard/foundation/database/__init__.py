"""PostgreSQL access: typed transactions under two roles, and the columns that tables share. Knows no table."""

from switchboard.foundation.database.clock import now
from switchboard.foundation.database.columns import (
    ENCRYPTED_CONTENT,
    ENCRYPTION_LABEL,
    TenantTable,
    document_column,
    encryption_label,
    json_column,
    new_id,
)
from switchboard.foundation.database.engine import DatabaseUrlError, create_engine
from switchboard.foundation.database.outages import DatabaseCheck, is_database_away, is_refused_value, retry_while_away
from switchboard.foundation.database.replica import ReadReplica, ReplicaNotUsable
from switchboard.foundation.database.session import Database, ReadValue, SystemSession, TenantSession, after_commit
from switchboard.foundation.database.statements import (
    NewRow,
    RoleSession,
    are_among,
    build_lock,
    fetch_rows,
    insert_row,
    insert_together,
    is_among,
    is_not_among,
    lock_name,
    run_statement,
    try_lock_name,
)

__all__ = [
    "ENCRYPTED_CONTENT",
    "ENCRYPTION_LABEL",
    "Database",
    "DatabaseCheck",
    "DatabaseUrlError",
    "NewRow",
    "ReadReplica",
    "ReadValue",
    "ReplicaNotUsable",
    "RoleSession",
    "SystemSession",
    "TenantSession",
    "TenantTable",
    "after_commit",
    "are_among",
    "build_lock",
    "create_engine",
    "document_column",
    "encryption_label",
    "fetch_rows",
    "insert_row",
    "insert_together",
    "is_among",
    "is_database_away",
    "is_not_among",
    "is_refused_value",
    "json_column",
    "lock_name",
    "new_id",
    "now",
    "retry_while_away",
    "run_statement",
    "try_lock_name",
]
