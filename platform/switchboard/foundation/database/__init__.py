"""PostgreSQL access: typed transactions under two roles, and the columns that tables share. Knows no table."""

# ruff: noqa: I001 - sorted, but one statement for each module: "A as A" exports a name (PEP 484, section "Stub files")
from switchboard.foundation.database.clock import now as now
from switchboard.foundation.database.columns import (
    BUCKETS as BUCKETS,
    ENCRYPTION_LABEL as ENCRYPTION_LABEL,
    Money as Money,
    RecordTable as RecordTable,
    TenantTable as TenantTable,
    document_column as document_column,
    encryption_label as encryption_label,
    get_bucket as get_bucket,
    index_due as index_due,
    json_column as json_column,
    new_id as new_id,
    partition_by_month as partition_by_month,
    refer_to as refer_to,
)
from switchboard.foundation.database.engine import create_engine as create_engine
from switchboard.foundation.database.moves import (
    NOT_MOVING as NOT_MOVING,
    OrganizationFrozen as OrganizationFrozen,
    is_not_moving as is_not_moving,
)
from switchboard.foundation.database.outages import (
    is_database_away as is_database_away,
    is_refused_value as is_refused_value,
    retry_while_away as retry_while_away,
)
from switchboard.foundation.database.replica import (
    ReadReplica as ReadReplica,
    ReplicaNotUsable as ReplicaNotUsable,
)
from switchboard.foundation.database.session import (
    JOB_TIMEOUT as JOB_TIMEOUT,
    Database as Database,
    DatabaseSession as DatabaseSession,
    ReadSession as ReadSession,
    SessionParts as SessionParts,
    Statement as Statement,
    SystemSession as SystemSession,
    TenantOwned as TenantOwned,
    WriteSession as WriteSession,
)
from switchboard.foundation.database.statements import (
    BATCH as BATCH,
    are_among as are_among,
    is_among as is_among,
    is_in_batch as is_in_batch,
    is_not_among as is_not_among,
    lock_name as lock_name,
    try_lock_name as try_lock_name,
)
