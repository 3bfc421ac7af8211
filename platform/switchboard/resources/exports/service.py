"""The lists that can be exported, read newest first in batches. A batch begins after the last row of the one before."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import BaseModel

from switchboard.foundation.database import ReadSession, TenantTable, WriteSession
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import NO_ID, parse_id
from switchboard.resources.calls.queries import list_lines
from switchboard.resources.calls.schemas import CallFilters, CallOut
from switchboard.resources.calls.service import list_call_batch
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import CampaignContactOut
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import ContactFilters, ContactOut
from switchboard.resources.exports.queries import BATCH, read_batch_after, select_messages_of_period
from switchboard.resources.exports.schemas import AuditRow, PeriodExportQuery, TranscriptRow
from switchboard.resources.identity.queries import select_audit_entries
from switchboard.resources.sms.schemas import SmsMessageOut
from switchboard.resources.usage import queries as usage
from switchboard.resources.usage.schemas import UsageOut

MONTHS: Final = 12

Batch: TypeAlias = tuple[Sequence[BaseModel], TenantTable | None]
"""Rows to write, and the row after which the next batch begins; None after the last batch."""


@dataclass(frozen=True, slots=True)
class Export:
    """A list to export: its name, the shape of its rows, the names of its filters, and the reader of a batch."""

    name: str
    model: type[BaseModel]
    filters: Iterable[str]
    read: Callable[[WriteSession, TenantTable | None], Awaitable[Batch]]


def export_calls(filters: CallFilters, *, base_url: str) -> Export:
    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        found, last = await list_call_batch(session, filters, after=after, limit=BATCH)
        return [CallOut.from_row(call, base_url=base_url) for call in found], last

    return Export("calls", CallOut, _list_given(filters), read)


def export_transcripts(filters: CallFilters) -> Export:
    """Return the export of the transcripts of the calls that match the filters, redacted as they are stored."""

    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        found, last = await list_call_batch(session, filters, after=after, limit=BATCH)
        places = {call.id: place for place, call in enumerate(found) if call.has_transcript}
        lines = await list_lines(session, [call for call in found if call.has_transcript])
        await open_content(session, *lines)
        ordered = sorted(lines, key=lambda line: places[line.call_id])
        return [TranscriptRow.model_validate(line) for line in ordered], last

    return Export("transcripts", TranscriptRow, _list_given(filters), read)


def export_messages(period: PeriodExportQuery) -> Export:
    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        return await read_batch_after(session, select_messages_of_period(session, period), after, SmsMessageOut)

    return Export("messages", SmsMessageOut, _list_given(period), read)


def export_contacts(filters: ContactFilters) -> Export:
    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        found, last = await contacts.list_contact_batch(session, filters, after=after, limit=BATCH)
        return [ContactOut.model_validate(contact) for contact in found], last

    return Export("contacts", ContactOut, _list_given(filters), read)


def export_campaign_contacts(campaign_id: str) -> Export:
    """Return the export of a campaign's contacts and results. Reading it raises `NotFound` for an unknown campaign."""
    key = parse_id(campaign_id) or NO_ID

    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        await get_row(session, Campaign, key)
        return await read_batch_after(session, select_campaign_contacts(session, key), after, CampaignContactOut)

    return Export("campaign-contacts", CampaignContactOut, (str(key),), read)


def export_usage() -> Export:
    """Return the export of the latest months' usage."""

    async def read(session: ReadSession, _after: TenantTable | None) -> Batch:
        return await usage.summarize_months(session, MONTHS), None

    return Export("usage", UsageOut, (), read)


def export_audit_log() -> Export:
    async def read(session: ReadSession, after: TenantTable | None) -> Batch:
        return await read_batch_after(session, select_audit_entries(session), after, AuditRow)

    return Export("audit-log", AuditRow, (), read)


def _list_given(query: BaseModel) -> list[str]:
    return sorted(query.model_dump(exclude_defaults=True, exclude={"format", "limit", "offset"}))
