"""Queries and rows of exports."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, CreatedAt, GivenMoment, Query, ReferenceId
from switchboard.resources.calls.schemas import CallFilters, TranscriptEntryOut
from switchboard.resources.contacts.schemas import ContactFilters

ExportFormat = Literal["csv", "jsonl"]


class ExportQuery(Query):
    """The format of an export."""

    format: ExportFormat = Field("csv", description="`csv`: with a header. `jsonl`: one JSON object a line.")


class CallExportQuery(ExportQuery, CallFilters):
    """The format of an export of calls, and the filters of the call list."""


class ContactExportQuery(ExportQuery, ContactFilters):
    """The format of an export of contacts, and the filters of the contact list."""


class PeriodExportQuery(ExportQuery):
    """The format of an export, and a period."""

    created_after: GivenMoment | None = Field(None, description="Earliest time of creation.")
    created_before: GivenMoment | None = Field(None, description="Time of creation that the rows are before.")


class CampaignExportQuery(ExportQuery):
    """The format of an export, and a campaign."""

    campaign_id: ReferenceId = Field(description="Id of the campaign.")


class TranscriptRow(TranscriptEntryOut):
    """An entry of a transcript with its call."""

    call_id: UUID = Field(description="Id of the call.")


class AuditRow(Answer):
    """An entry of the audit log."""

    id: UUID
    created_at: CreatedAt
    actor: str
    action: str
    subject: str
