"""Rows of one organization: which tables have them, and what stays behind."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from switchboard.apps.backups.archive import ArchivedTable
from switchboard.apps.backups.backup import TableCopy, build_query
from switchboard.apps.backups.freezing import MoveRefused

OWNER: Final = "organization_id"
MEMBERS: Final = "select user_id from membership where organization_id = '{id}'"
NOT_MOVED: Final[Mapping[str, str]] = {
    "carrier_reference": "the triggers of calls and text messages write it",
    "limit_counter": "the triggers of what is counted count again",
    "limit_counter_change": "the triggers of what is counted count again",
    "passkey": "bound to the address of the source",
    "password_request": "a link of the source",
    "process_lease": "of a process of the source",
    "queue_attendant": "of browser sessions",
    "row_count": "the triggers of lists count again",
    "row_count_change": "the triggers of lists count again",
    "support_session": "of the source's superadmins; the audit log has them",
    "used_passkey_challenge": "of the source's sign-in page",
    "user_session": "of browsers that are signed in to the source",
    "vector_deletion": "of vectors in the source's store",
    "vector_maintenance": "of vectors in the source's store",
}
"""Tables that stay behind, with the reason."""
CONDITIONS: Final[Mapping[str, str]] = {
    "organization": "id = '{id}'",
    "user_account": f"id in ({MEMBERS})",
    "authenticator_app": f"user_id in ({MEMBERS})",
    "recovery_code": f"user_id in ({MEMBERS})",
    "oauth_client": "id in (select client_id from oauth_grant where organization_id = '{id}')",
    "sms_conversation_reader": f"organization_id = '{{id}}' and user_id in ({MEMBERS})",
}
"""Conditions of rows that move, of tables where the column `organization_id` does not say it all."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "organization": {"moving_since": "null", "frozen_at": "null"},
    # At once, because the vendor reports changes to the address of the source.
    "calendar": {"watch_due_at": "least(watch_due_at, created_at)"},
    # A passkey is a second factor that stays behind, and without it the password alone would sign in.
    "user_account": {
        "is_superadmin": "false",
        "password_hash": "case when exists (select from passkey where user_id = user_account.id) then '' "
        "else password_hash end",
    },
}
"""Expressions in the place of some columns: only the target's operator makes superadmins there."""


def is_moved(table: ArchivedTable) -> bool:
    """Return whether an organization's rows of a table move with it. Raises `MoveRefused` for an unknown table."""
    if table.name in NOT_MOVED:
        return False
    if table.name not in CONDITIONS and OWNER not in table.columns:
        raise MoveRefused(f"the table {table.name} is of no version of Switchboard that moves organizations")
    return True


def build_copy(table: ArchivedTable, organization_id: UUID, change: Callable[[bytes], bytes]) -> TableCopy:
    """Build the copy of an organization's rows of a table."""
    condition = CONDITIONS.get(table.name, f"{OWNER} = '{{id}}'").format(id=organization_id)
    values = VALUES.get(table.name, MappingProxyType({}))
    return TableCopy(table, f"{build_query(table, values)} where {condition}", change)
