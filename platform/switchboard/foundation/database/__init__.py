"""PostgreSQL access: typed transactions under two roles, and the columns that tables share. Knows no table."""

from switchboard.foundation.database.clock import now
from switchboard.foundation.database.columns import (
    BUCKETS,
    ENCRYPTION_LABEL,
    Money,
    TenantTable,
    document_column,
    encryption_label,
    get_bucket,
    index_due,
    json_column,
    new_id,
)
from switchboard.foundation.database.engine import DatabaseUrlError, create_engine
from switchboard.foundation.database.outages import DatabaseCheck, is_database_away, is_refused_value, retry_while_away
from switchboard.foundation.database.replica import ReadReplica, ReplicaNotUsable
from switchboard.foundation.database.session import (
    JOB_TIMEOUT,
    Database,
    DatabaseSession,
    PoolUse,
    ReadSession,
    SessionParts,
    Statement,
    SystemSession,
    WriteSession,
)
from switchboard.foundation.database.statements import (
    BATCH,
    are_among,
    build_lock,
    is_among,
    is_in_batch,
    is_not_among,
    lock_name,
    try_lock_name,
)

__all__ = [
    "BATCH",
    "BUCKETS",
    "ENCRYPTION_LABEL",
    "JOB_TIMEOUT",
    "Database",
    "DatabaseCheck",
    "DatabaseSession",
    "DatabaseUrlError",
    "Money",
    "PoolUse",
    "ReadReplica",
    "ReadSession",
    "ReplicaNotUsable",
    "SessionParts",
    "Statement",
    "SystemSession",
    "TenantTable",
    "WriteSession",
    "are_among",
    "build_lock",
    "create_engine",
    "document_column",
    "encryption_label",
    "get_bucket",
    "index_due",
    "is_among",
    "is_database_away",
    "is_in_batch",
    "is_not_among",
    "is_refused_value",
    "json_column",
    "lock_name",
    "new_id",
    "now",
    "retry_while_away",
    "try_lock_name",
]
