"""Erase what an organization has about one phone number (docs/decisions/0037-data-subject-requests.md).

Rows about the person are deleted, and in all other rows the number is replaced. Each batch is a transaction of the
organization. An erasure that was interrupted is run again: what is done matches nothing any more.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import Table
from sqlmodel import SQLModel, col, delete, func, or_, select, update

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, WriteSession, are_among, now
from switchboard.foundation.encryption.content import encrypt_values
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.idempotency import delete_responses
from switchboard.resources.appointments.booking import delete_settled_appointments
from switchboard.resources.calls.filters import match_number
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.retention import SETTLED, CallDeleter
from switchboard.resources.campaigns.service import delete_contacts_of_number
from switchboard.resources.contacts.models import Contact
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.retention import ExpiringRows, RetentionDeleter
from switchboard.resources.identity.service import get_policy
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.privacy.schemas import PrivacyReport
from switchboard.resources.privacy.subject_rows import (
    CONFIGURATION,
    Row,
    get_key,
    list_searched_tables,
    list_text_columns,
    match_owner,
    match_party,
    read_mentions,
)
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.retention import SETTLED_MESSAGES, MessageDeleter

DAY: Final = timedelta(days=1)
COPIES: Final = ("delivery", "event", "automation_run")
"""Tables with copies of what happened: a row that mentions the number is deleted."""


Follow = Callable[[WriteSession, Sequence[UUID]], Awaitable[None]]
AFTER_REDACTION: Final[dict[str, Follow]] = {"knowledge_text": knowledge.reindex_documents}
"""What follows the replacement in the rows of these ids, in the same transaction."""


@dataclass(frozen=True, slots=True)
class MentionRemover:
    """Removes the mentions of one number from the tables of an organization."""

    database: Database
    organization_id: UUID
    pattern: NumberPattern

    async def delete_rows(self, table: Table) -> int:
        """Delete the rows of a table that mention the number; return how many."""
        deleted, after, is_over = 0, None, False
        while not is_over:
            async with self.database.write(self.organization_id) as session:
                rows, after = await read_mentions(session, table, self.pattern, after=after)
                same = are_among(list(table.primary_key), [get_key(table, row) for row in rows])
                await session.exec(delete(table).where(match_owner(session, table), same))
            deleted += len(rows)
            is_over = after is None
        return deleted

    async def redact_rows(self, table: Table) -> int:
        """Replace the number in the texts of a table; return the number of rows."""
        redacted, after, is_over = 0, None, False
        while not is_over:
            async with self.database.write(self.organization_id) as session:
                # The policies of the audit log and of the ledger let nothing else change their entries.
                await session.exec(select(func.set_config("app.erasure", "on", True)))
                rows, after = await read_mentions(session, table, self.pattern, after=after, lock=True)
                for row in rows:
                    await self._redact_row(session, table, row)
                if rows and (follow := AFTER_REDACTION.get(table.name)):
                    await follow(session, [row["id"] for row in rows])
            redacted += len(rows)
            is_over = after is None
        return redacted

    async def _redact_row(self, session: WriteSession, table: Table, row: Row) -> None:
        fresh = {column.name: self.pattern.redact(row[column.name]) for column in list_text_columns(table)}
        changed = {name: value for name, value in fresh.items() if value != row[name]}
        sealed = await session.run_sync(encrypt_values, table, row, changed)
        same_row = [column == row[column.name] for column in table.primary_key]
        await session.exec(update(table).where(*same_row).values(sealed))


class ErasureRefused(Exception):
    """An erasure would break something; the message says what. Nothing has been erased."""


class NumberInConfiguration(ErasureRefused):
    """The organization's own configuration names the number; the message lists where."""


class LegalHold(ErasureRefused):
    """The organization has to keep everything."""


@dataclass(frozen=True, slots=True)
class PersonEraser:
    """Erases everything about one phone number."""

    database: Database
    keyring: KeyRing
    archive: RecordingArchive

    async def erase(self, organization_id: UUID, phone_number: str, *, actor: str) -> PrivacyReport:
        """Erase an E.164 number; `actor` is for the audit log, whose entry does not name the number.

        While rows are `waiting`, because something still goes on with them, the erasure is run again later. Raises
        `ErasureRefused` before anything has changed, and `ObjectStoreAway`, after which the erasure is run again.
        """
        pattern = NumberPattern(phone_number)
        remover = MentionRemover(self.database, organization_id, pattern)
        deleted, redacted = Counter[str](), Counter[str]()
        async with self.database.write(organization_id) as session:
            await require_erasable(session, phone_number)
            await _keep_text_opt_out(session, phone_number)
            is_listed = await do_not_call.erase_entry(session, phone_number)
            deleted["campaign_contact"] = await delete_contacts_of_number(session, phone_number)
            deleted["appointment"] = await delete_settled_appointments(session, phone_number)
        for name in COPIES:
            deleted[name] = await remover.delete_rows(SQLModel.metadata.tables[name])
        message = or_(col(SmsMessage.from_number) == phone_number, col(SmsMessage.to_number) == phone_number)
        calls = ExpiringRows(Call, (*SETTLED, match_number(phone_number)))
        messages = ExpiringRows(SmsMessage, (*SETTLED_MESSAGES.conditions, message))
        deleters: tuple[RetentionDeleter, ...] = (
            CallDeleter(self.database, archive=self.archive, rows=calls),
            MessageDeleter(self.database, recordings=self.archive.recordings, rows=messages),
        )
        for deleter in deleters:
            deleted[str(deleter.rows.table.__tablename__)] = await _delete_all(deleter, organization_id)
        async with self.database.write(organization_id) as session:
            deleted["sms_conversation"] = await _delete_conversations(session, phone_number)
            contact = (session.owns(Contact), col(Contact.phone_number) == phone_number)
            deleted["contact"] = (await session.exec(delete(Contact).where(*contact))).rowcount
            deleted["idempotency_record"] = await delete_responses(session, self.keyring, pattern.occurs_in)
        for table in list_searched_tables():
            if table.name not in CONFIGURATION:
                redacted[table.name] = await remover.redact_rows(table)
        async with self.database.write(organization_id, actor=actor) as session:
            waiting = await _count_waiting(session, phone_number)
            record_audit(session, AuditAction.PERSON_ERASED, organization_id, fields=deleted + redacted)
        return PrivacyReport(deleted=+deleted, redacted=+redacted, waiting=waiting, is_on_do_not_call_list=is_listed)


async def require_erasable(session: ReadSession, phone_number: str) -> None:
    """Raise `LegalHold`, or `NumberInConfiguration` if an agent or a phone number, for instance, would not work without
    the number.
    """
    if (await get_policy(session, session.organization_id)).retention.legal_hold:
        raise LegalHold("the organization is under a legal hold ([retention] legal_hold): the operator ends it first")
    pattern = NumberPattern(phone_number)
    named = [
        f"{table.name} {row['id']}"
        for table in list_searched_tables()
        if table.name in CONFIGURATION
        for row in (await read_mentions(session, table, pattern))[0]
    ]
    if named:
        raise NumberInConfiguration(
            f"the number is part of the organization's configuration, change or delete first: {', '.join(named)}"
        )


async def _keep_text_opt_out(session: WriteSession, phone_number: str) -> None:
    """Put a number on the do-not-call list whose STOP only a closed conversation records: it is about to be deleted."""
    closed = session.select(SmsConversation).where(
        col(SmsConversation.contact_number) == phone_number, col(SmsConversation.status) == "closed"
    )
    if (await session.exec(closed.limit(1))).first() and not await do_not_call.is_listed(session, phone_number):
        await do_not_call.add_entry(session, phone_number, source="text")


async def _delete_all(deleter: RetentionDeleter, organization_id: UUID) -> int:
    """Delete what the deleter finds, as retention does: with recordings and transcripts, and keeping the usage."""
    deleted, count = 0, deleter.most
    while count == deleter.most:
        count = await deleter.delete_batch(organization_id, now() + DAY)
        deleted += count
    return deleted


async def _delete_conversations(session: WriteSession, phone_number: str) -> int:
    """Delete the conversations without messages, also those that STOP has closed."""
    messages = select(SmsMessage.id).where(
        session.owns(SmsMessage), col(SmsMessage.conversation_id) == col(SmsConversation.id)
    )
    ours = (session.owns(SmsConversation), col(SmsConversation.contact_number) == phone_number)
    return (await session.exec(delete(SmsConversation).where(*ours, ~messages.exists()))).rowcount


async def _count_waiting(session: ReadSession, phone_number: str) -> Counter[str]:
    waiting = Counter[str]()
    for table in list_searched_tables():
        about = match_party(table, phone_number)
        if about is not None:
            rows = select(func.count()).select_from(table).where(match_owner(session, table), about)
            waiting[table.name] = (await session.exec(rows)).one()
    return +waiting
