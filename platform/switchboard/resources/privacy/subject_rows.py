"""Rows about one phone number: those that belong to its person, and the texts of all other rows that mention it.

Mentions are found in every text and JSON column of every table of organizations, so that a new table is covered without
being named here.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import JSON, Column, ColumnElement, String, Table, Text, and_, cast, or_, tuple_
from sqlmodel import AutoString, SQLModel, not_, select

from switchboard.foundation.database import ENCRYPTION_LABEL, ReadSession
from switchboard.foundation.encryption import content as encryption
from switchboard.foundation.encryption.content import build_prefix, match_prefix
from switchboard.resources.privacy.number_pattern import NumberPattern

BATCH: Final = 500
Row: TypeAlias = dict[str, Any]
"""Values of a row by the names of their columns."""
PARTY_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "appointment": ("phone_number",),
    "call": ("from_number", "to_number"),
    "campaign_contact": ("phone_number",),
    "contact": ("phone_number",),
    "do_not_call_entry": ("phone_number",),
    "sms_conversation": ("contact_number",),
    "sms_message": ("from_number", "to_number"),
}
"""Columns with the number of the person that a row is about, by table."""
CONFIGURATION: Final = frozenset(
    (
        "agent", "appointment_type", "automation", "calendar", "event_target", "integration", "organization",
        "phone_number", "provider_configuration",
    )
)  # fmt: skip
"""Tables that users edit, and that do not work without the number that they name."""
OUT_OF_REACH: Final = frozenset(("erased_number", "oauth_grant", "oauth_token", "row_count", "user_session"))
"""Tables that organizations may not change. Their texts are hashes, ids, names of lists and scopes, and browsers."""


def list_searched_tables() -> list[Table]:
    """List the tables of organizations that can mention a number."""
    return [
        table
        for table in SQLModel.metadata.sorted_tables
        if table.name not in OUT_OF_REACH
        and ("organization_id" in table.columns or table.name == "organization")
        and list_text_columns(table)
    ]


def list_text_columns(table: Table) -> list[Column[Any]]:
    """List the columns of a table with text or JSON that the keyring does not encrypt."""
    return [
        column
        for column in table.columns
        if ENCRYPTION_LABEL not in column.info
        and not column.foreign_keys
        and isinstance(getattr(column.type, "item_type", column.type), AutoString | String | JSON)
    ]


def match_party(table: Table, phone_number: str) -> ColumnElement[bool] | None:
    """Return the condition that a row is about the number's person; None for a table without such rows."""
    columns = PARTY_COLUMNS.get(table.name)
    return or_(*(table.c[name] == phone_number for name in columns)) if columns else None


def match_mention(table: Table, pattern: NumberPattern) -> ColumnElement[bool]:
    """Return the condition that a row may mention the number and is not about its person: PostgreSQL cannot search an
    encrypted text, so that rows with such a text match, too.
    """
    texts = [cast(column, Text).regexp_match(pattern.expression) for column in list_text_columns(table)]
    texts += [match_prefix(column, build_prefix()) for column in encryption.list_conversation_columns(table)]
    party = match_party(table, pattern.phone_number)
    return and_(or_(*texts), not_(party)) if party is not None else or_(*texts)


def match_owner(session: ReadSession, table: Table) -> ColumnElement[bool]:
    """Return the condition that a row belongs to the session's organization."""
    owner = table.c.id if table.name == "organization" else table.c.organization_id
    return owner == session.organization_id


async def read_mentions(
    session: ReadSession,
    table: Table,
    pattern: NumberPattern,
    *,
    after: Sequence[object] | None = None,
    lock: bool = False,
) -> tuple[list[Row], Sequence[object] | None]:
    """Return the rows of the next batch that mention the number, with their texts, and the key after which the
    following batch begins; None after the last.
    """
    columns = list_text_columns(table)
    found = await read_batch(session, table, match_mention(table, pattern), columns=columns, after=after, lock=lock)
    rows = [row for row in found if any(pattern.redact(row[column.name]) != row[column.name] for column in columns)]
    return rows, get_key(table, found[-1]) if len(found) == BATCH else None


async def read_batch(
    session: ReadSession,
    table: Table,
    condition: ColumnElement[bool],
    *,
    columns: Sequence[Column[Any]],
    after: Sequence[object] | None = None,
    lock: bool = False,
) -> list[Row]:
    """Read the next rows of a table that match a condition, in the order of their key: the key, and `columns`, with
    their texts decrypted.

    `lock` keeps others from changing the rows until the transaction ends.
    """
    key = list(table.primary_key)
    owner = [table.c.organization_id] if encryption.list_conversation_columns(table) else []
    rows = select(*dict.fromkeys([*key, *owner, *columns])).where(match_owner(session, table), condition)
    if after is not None:
        rows = rows.where(tuple_(*key) > tuple(after))
    rows = rows.order_by(*key).limit(BATCH)
    found = await session.fetch(rows.with_for_update() if lock else rows)
    stored = [row._asdict() for row in found]
    return [{**row, **await session.run_sync(encryption.decrypt_values, table, row)} for row in stored]


def get_key(table: Table, row: Row) -> list[object]:
    """Return the primary key of a row."""
    return [row[column.name] for column in table.primary_key]
