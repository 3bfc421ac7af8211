"""Statements about privacy requests, most of them about the rows of one phone number: those that belong to its person,
and the texts of all other rows that mention it.

Mentions are found in every text and JSON column of every table of organizations, so that a new table is covered without
being named here.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import JSON, Column, ColumnElement, Select, String, Table, Text, and_, cast, or_, tuple_
from sqlmodel import AutoString, SQLModel, col, delete, func, not_, select, update

from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import (
    ENCRYPTION_LABEL,
    ReadSession,
    SystemSession,
    TenantTable,
    WriteSession,
    are_among,
    is_among,
)
from switchboard.foundation.encryption.content import (
    Content,
    ContentText,
    build_prefix,
    list_content_columns,
    match_prefix,
    open_columns,
    seal_value,
)
from switchboard.foundation.events.models import Delivery, Event
from switchboard.foundation.web.row_counts import delete_row_counts
from switchboard.foundation.work import DueRows
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls.models import ORDER, Call, TranscriptLine, TranscriptSearch
from switchboard.resources.calls.queries import SETTLED, match_number
from switchboard.resources.contacts.models import Contact
from switchboard.resources.destinations.queries import delete_limit_counts
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.queries import ExpiringRows
from switchboard.resources.phone_numbers.models import CarrierReference
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.queries import SETTLED_MESSAGES

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
OUT_OF_REACH: Final = frozenset(
    (
        "erased_number", "limit_counter", "limit_counter_change", "oauth_grant", "oauth_token", "row_count_change",
        "row_count", "user_session",
    )
)  # fmt: skip
"""Tables that only the platform writes. Their texts are hashes, ids, names of lists, counts, and scopes, and
browsers.
"""


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
        and isinstance(getattr(column.type, "item_type", column.type), AutoString | String | JSON | ContentText)
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
    texts += [match_prefix(column, build_prefix()) for column in list_content_columns(table)]
    party = match_party(table, pattern.phone_number)
    return and_(or_(*texts), not_(party)) if party is not None else or_(*texts)


def match_owner(session: ReadSession, table: Table) -> ColumnElement[bool]:
    """Return the condition that a row belongs to the session's organization."""
    owner = table.c.id if table.name == "organization" else table.c.organization_id
    return owner == session.organization_id


async def read_mentions(
    session: ReadSession, table: Table, pattern: NumberPattern, *, after: Sequence[object] | None = None
) -> tuple[list[Row], Sequence[object] | None]:
    """Return the rows of the next batch that mention the number, with their texts, and the key after which the
    following batch begins; None after the last.
    """
    return await _read_mentions(session, table, pattern, _select_mentions(session, table, pattern, after))


async def lock_mentions(
    session: WriteSession, table: Table, pattern: NumberPattern, *, after: Sequence[object] | None = None
) -> tuple[list[Row], Sequence[object] | None]:
    """Lock the rows of the next batch that mention the number, and return what `read_mentions` returns."""
    rows = _select_mentions(session, table, pattern, after).with_for_update()
    return await _read_mentions(session, table, pattern, rows)


def _select_mentions(
    session: ReadSession, table: Table, pattern: NumberPattern, after: Sequence[object] | None
) -> Select[*tuple[Any, ...]]:
    return _select_batch(session, table, match_mention(table, pattern), list_text_columns(table), after)


async def _read_mentions(
    session: ReadSession, table: Table, pattern: NumberPattern, rows: Select[*tuple[Any, ...]]
) -> tuple[list[Row], Sequence[object] | None]:
    found, columns = await _read_opened(session, table, rows), list_text_columns(table)
    mentions = [row for row in found if any(pattern.redact(row[column.name]) != row[column.name] for column in columns)]
    return mentions, get_key(table, found[-1]) if len(found) == BATCH else None


async def list_matching_rows(session: ReadSession, table: Table, condition: ColumnElement[bool]) -> list[Row]:
    """Read the rows of a table that match a condition, in the order of their key, with their texts decrypted."""
    found: list[Row] = []
    after: list[object] | None = None
    while True:
        batch = _select_batch(session, table, condition, list(table.columns), after)
        rows = await _read_opened(session, table, batch)
        found += rows
        if len(rows) < BATCH:
            return found
        after = get_key(table, rows[-1])


def _select_batch(
    session: ReadSession,
    table: Table,
    condition: ColumnElement[bool],
    columns: Sequence[Column[Any]],
    after: Sequence[object] | None,
) -> Select[*tuple[Any, ...]]:
    key = list(table.primary_key)
    owner = [table.c.organization_id] if list_content_columns(table) else []
    chosen: Select[*tuple[Any, ...]] = select(*dict.fromkeys([*key, *owner, *columns]))
    rows = chosen.where(match_owner(session, table), condition)
    if after is not None:
        rows = rows.where(tuple_(*key) > tuple(after))
    return rows.order_by(*key).limit(BATCH)


async def _read_opened(session: ReadSession, table: Table, rows: Select[*tuple[Any, ...]]) -> list[Row]:
    stored = [row._asdict() for row in await session.fetch(rows)]
    await open_columns(session, table, *stored)
    return [
        {name: value.value if isinstance(value, Content) else value for name, value in row.items()} for row in stored
    ]


def get_key(table: Table, row: Row) -> list[object]:
    """Return the primary key of a row."""
    return [row[column.name] for column in table.primary_key]


async def delete_mentioning_rows(session: WriteSession, table: Table, rows: Sequence[Row]) -> None:
    """Delete these rows of a table."""
    same = are_among(list(table.primary_key), [get_key(table, row) for row in rows])
    await session.exec(delete(table).where(match_owner(session, table), same))


async def allow_redaction(session: WriteSession) -> None:
    """Let this transaction redact entries of the audit log and of the ledger, whose policies let nothing else change
    them.
    """
    await session.exec(select(func.set_config("app.erasure", "on", True)))


async def redact_row(session: WriteSession, table: Table, row: Row, pattern: NumberPattern) -> None:
    """Replace the number in a row's texts."""
    fresh = {column.name: pattern.redact(row[column.name]) for column in list_text_columns(table)}
    changed: dict[str, object] = {name: value for name, value in fresh.items() if value != row[name]}
    for column in list_content_columns(table):
        if column.name in changed:
            changed[column.name] = content = Content(fresh[column.name])
            await seal_value(session, column, content, row)
    same_row = [column == row[column.name] for column in table.primary_key]
    await session.exec(update(table).where(*same_row).values(changed))


async def has_closed_conversation(session: ReadSession, phone_number: str) -> bool:
    """Return whether a contact has ended a conversation by STOP."""
    closed = session.select(SmsConversation).where(
        col(SmsConversation.contact_number) == phone_number, col(SmsConversation.status) == "closed"
    )
    return (await session.exec(closed.limit(1))).first() is not None


async def delete_conversations(session: WriteSession, phone_number: str) -> int:
    """Delete the conversations without messages, also those that STOP has closed; return how many."""
    messages = select(SmsMessage.id).where(
        session.owns(SmsMessage), col(SmsMessage.conversation_id) == col(SmsConversation.id)
    )
    ours = (session.owns(SmsConversation), col(SmsConversation.contact_number) == phone_number)
    return (await session.exec(delete(SmsConversation).where(*ours, ~messages.exists()))).rowcount


async def delete_contact_of_number(session: WriteSession, phone_number: str) -> int:
    """Delete the contact with a number; return how many."""
    ours = (session.owns(Contact), col(Contact.phone_number) == phone_number)
    return (await session.exec(delete(Contact).where(*ours))).rowcount


def build_person_deletions(phone_number: str) -> tuple[ExpiringRows, ExpiringRows]:
    """Return the settled calls, and the settled text messages, of a number."""
    message = or_(col(SmsMessage.from_number) == phone_number, col(SmsMessage.to_number) == phone_number)
    return (
        ExpiringRows(Call, (*SETTLED, match_number(phone_number))),
        ExpiringRows(SmsMessage, (*SETTLED_MESSAGES.conditions, message)),
    )


async def count_waiting_rows(session: ReadSession, phone_number: str) -> Counter[str]:
    """Count the rows about a number that are left, by table."""
    waiting = Counter[str]()
    for table in list_searched_tables():
        about = match_party(table, phone_number)
        if about is not None:
            rows = select(func.count()).select_from(table).where(match_owner(session, table), about)
            waiting[table.name] = (await session.exec(rows)).one()
    return +waiting


async def list_recorded_calls(session: ReadSession, phone_number: str) -> Sequence[Call]:
    """List the calls of a number that have a recording in the store."""
    rows = session.select(Call).where(match_number(phone_number), col(Call.has_recording))
    return (await session.exec(rows)).all()


DUE_REQUESTS: Final = DueRows(PrivacyRequest, "due_at")


async def lock_requests(session: WriteSession) -> Sequence[PrivacyRequest]:
    return (await session.exec(session.select(PrivacyRequest).with_for_update())).all()


async def list_ids(session: ReadSession, table: type[TenantTable]) -> list[UUID]:
    return list(await session.exec(select(table.id).where(session.owns(table))))


async def delete_organization_rows(session: SystemSession, organization_id: UUID) -> int:
    """Delete an organization with all of its rows, unless calls are queued or live; return their number.

    The lock keeps new calls away: a row with a foreign key to the organization cannot be inserted meanwhile.
    """
    mine = col(Organization.id) == organization_id
    await session.exec(select(Organization.id).where(mine).with_for_update())
    unfinished = select(func.count()).where(
        col(Call.organization_id) == organization_id, is_among(col(Call.status), ORDER)
    )
    live = (await session.exec(unfinished)).one()
    if not live:
        await session.exec(delete(Organization).where(mine))
        await delete_records(session, organization_id)
    return live


async def delete_records(session: SystemSession, organization_id: UUID) -> None:
    """Delete the rows of a deleted organization that no foreign key deletes with it."""
    for table in (AuditEntry, CarrierReference, Delivery, Event, LedgerEntry, TranscriptLine, TranscriptSearch):
        await session.exec(delete(table).where(col(table.organization_id) == organization_id))
    await delete_row_counts(session, organization_id)
    await delete_limit_counts(session, organization_id)
