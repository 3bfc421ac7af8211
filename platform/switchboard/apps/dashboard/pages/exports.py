"""Downloads of whole lists. The lists link to them with their filters."""

from uuid import UUID

from quart import Response

from switchboard.apps.dashboard.blueprint import page
from switchboard.apps.dashboard.pages.calls import CallsQuery
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.settings import Settings
from switchboard.resources.exports import service as exports
from switchboard.resources.exports.responses import Exporter
from switchboard.resources.exports.schemas import ContactExportQuery, ExportQuery, PeriodExportQuery
from switchboard.resources.exports.service import Export


class CallsExportQuery(CallsQuery, ExportQuery):
    """The filters of the list of calls, and the format."""


@page("/dashboard/exports/calls", role="builder")
async def export_calls(viewer: Viewer, query: CallsExportQuery, exporter: Exporter, settings: Settings) -> Response:
    """Download the calls that match the filters."""
    covered = query.cover_days(viewer.timezone)
    return await _respond(exporter, viewer, exports.export_calls(covered, base_url=settings.base_url), query)


@page("/dashboard/exports/transcripts", role="builder")
async def export_transcripts(viewer: Viewer, query: CallsExportQuery, exporter: Exporter) -> Response:
    """Download the transcripts of the calls that match the filters."""
    return await _respond(exporter, viewer, exports.export_transcripts(query.cover_days(viewer.timezone)), query)


@page("/dashboard/exports/messages", role="builder")
async def export_messages(viewer: Viewer, query: PeriodExportQuery, exporter: Exporter) -> Response:
    return await _respond(exporter, viewer, exports.export_messages(query), query)


@page("/dashboard/exports/contacts", role="builder")
async def export_contacts(viewer: Viewer, query: ContactExportQuery, exporter: Exporter) -> Response:
    """Download the contacts that match the filters."""
    return await _respond(exporter, viewer, exports.export_contacts(query), query)


@page("/dashboard/exports/campaigns/<campaign_id>", role="builder")
async def export_campaign_contacts(
    viewer: Viewer, campaign_id: UUID, query: ExportQuery, exporter: Exporter
) -> Response:
    """Download a campaign's contacts with their results."""
    return await _respond(exporter, viewer, exports.export_campaign_contacts(str(campaign_id)), query)


@page("/dashboard/exports/usage", role="owner")
async def export_usage(viewer: Viewer, query: ExportQuery, exporter: Exporter) -> Response:
    """Download the usage by month."""
    return await _respond(exporter, viewer, exports.export_usage(), query)


@page("/dashboard/exports/audit-log", role="owner")
async def export_audit_log(viewer: Viewer, query: ExportQuery, exporter: Exporter) -> Response:
    return await _respond(exporter, viewer, exports.export_audit_log(), query)


async def _respond(exporter: Exporter, viewer: Viewer, export: Export, query: ExportQuery) -> Response:
    return await exporter.respond(viewer.organization_id, export, query.format, actor=viewer.principal.actor)
