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
from sqlmodel import SQLModel

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, WriteSession, now
from switchboard.foundation.web.idempotency import delete_responses
from switchboard.resources.appointments.queries import delete_settled_appointments
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.retention import CallDeleter
from switchboard.resources.campaigns.service import delete_contacts_of_number
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.retention import RetentionDeleter
from switchboard.resources.identity.service import get_policy
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.privacy.queries import (
    CONFIGURATION,
    allow_redaction,
    build_person_deletions,
    count_waiting_rows,
    delete_contact_of_number,
    delete_conversations,
    delete_mentioning_rows,
    has_closed_conversation,
    list_searched_tables,
    lock_mentions,
    read_mentions,
    redact_row,
)
from switchboard.resources.privacy.schemas import PrivacyReport
from switchboard.resources.sms.retention import MessageDeleter

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
                await delete_mentioning_rows(session, table, rows)
            deleted += len(rows)
            is_over = after is None
        return deleted

    async def redact_rows(self, table: Table) -> int:
        """Replace the number in the texts of a table; return the number of rows."""
        redacted, after, is_over = 0, None, False
        while not is_over:
            async with self.database.write(self.organization_id) as session:
                await allow_redaction(session)
                rows, after = await lock_mentions(session, table, self.pattern, after=after)
                for row in rows:
                    await redact_row(session, table, row, self.pattern)
                if rows and (follow := AFTER_REDACTION.get(table.name)):
                    await follow(session, [row["id"] for row in rows])
            redacted += len(rows)
            is_over = after is None
        return redacted


class ErasureRefused(Exception):
    """An erasure would break something; the message says what. Nothing has been erased."""


@dataclass(frozen=True, slots=True)
class PersonEraser:
    database: Database
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
        calls, messages = build_person_deletions(phone_number)
        deleters: tuple[RetentionDeleter, ...] = (
            CallDeleter(self.database, archive=self.archive, rows=calls),
            MessageDeleter(self.database, recordings=self.archive.recordings, rows=messages),
        )
        for deleter in deleters:
            deleted[str(deleter.rows.table.__tablename__)] = await _delete_all(deleter, organization_id)
        async with self.database.write(organization_id) as session:
            deleted["sms_conversation"] = await delete_conversations(session, phone_number)
            deleted["contact"] = await delete_contact_of_number(session, phone_number)
            deleted["idempotency_record"] = await delete_responses(session, pattern.occurs_in)
        for table in list_searched_tables():
            if table.name not in CONFIGURATION:
                redacted[table.name] = await remover.redact_rows(table)
        async with self.database.write(organization_id, actor=actor) as session:
            waiting = await count_waiting_rows(session, phone_number)
            record_audit(session, AuditAction.PERSON_ERASED, organization_id, fields=deleted + redacted)
        return PrivacyReport(deleted=+deleted, redacted=+redacted, waiting=waiting, is_on_do_not_call_list=is_listed)


async def require_erasable(session: ReadSession, phone_number: str) -> None:
    """Raise `ErasureRefused` under a legal hold, and if an agent or a phone number, for instance, would not work
    without the number.
    """
    if (await get_policy(session, session.organization_id)).retention.legal_hold:
        raise ErasureRefused(
            "the organization is under a legal hold ([retention] legal_hold): the operator ends it first"
        )
    pattern = NumberPattern(phone_number)
    named = [
        f"{table.name} {row['id']}"
        for table in list_searched_tables()
        if table.name in CONFIGURATION
        for row in (await read_mentions(session, table, pattern))[0]
    ]
    if named:
        raise ErasureRefused(
            f"the number is part of the organization's configuration, change or delete first: {', '.join(named)}"
        )


async def _keep_text_opt_out(session: WriteSession, phone_number: str) -> None:
    """Put a number on the do-not-call list whose STOP only a closed conversation records: it is about to be deleted."""
    if await has_closed_conversation(session, phone_number) and not await do_not_call.is_listed(session, phone_number):
        await do_not_call.add_entry(session, phone_number, source="text")


async def _delete_all(deleter: RetentionDeleter, organization_id: UUID) -> int:
    """Delete what the deleter finds, as retention does: with recordings and transcripts, and keeping the usage."""
    deleted, count = 0, deleter.most
    while count == deleter.most:
        count = await deleter.delete_batch(organization_id, now() + DAY)
        deleted += count
    return deleted
