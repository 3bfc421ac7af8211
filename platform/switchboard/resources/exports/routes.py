"""Endpoints of exports."""

from quart import Response

from switchboard.foundation.settings import Settings
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.principal import Principal
from switchboard.resources.exports import service as exports
from switchboard.resources.exports.responses import Exporter
from switchboard.resources.exports.schemas import (
    CallExportQuery,
    CampaignExportQuery,
    ContactExportQuery,
    ExportQuery,
    PeriodExportQuery,
)
from switchboard.resources.exports.service import Export

FORMATS = ("text/csv", "application/jsonl")
blueprint = ApiBlueprint("exports", __name__, tags={"exports": "Whole lists as CSV or JSON Lines, newest first."})


@blueprint.get("/v1/exports/calls")
@endpoint(scope="calls:read", media_types=FORMATS, errors=[InvalidState])
async def export_calls(
    principal: Principal, query: CallExportQuery, exporter: Exporter, settings: Settings
) -> Response:
    """Export calls.

    The columns are the fields of a call.
    """
    return await _respond(exporter, principal, exports.export_calls(query, base_url=settings.base_url), query)


@blueprint.get("/v1/exports/transcripts")
@endpoint(scope="calls:read", media_types=FORMATS, errors=[InvalidState])
async def export_transcripts(principal: Principal, query: CallExportQuery, exporter: Exporter) -> Response:
    """Export the transcripts of calls.

    Each entry is a row with `call_id`. Private data is redacted as in the stored transcripts.
    """
    return await _respond(exporter, principal, exports.export_transcripts(query), query)


@blueprint.get("/v1/exports/messages")
@endpoint(scope="sms:read", media_types=FORMATS)
async def export_messages(principal: Principal, query: PeriodExportQuery, exporter: Exporter) -> Response:
    """Export text messages."""
    return await _respond(exporter, principal, exports.export_messages(query), query)


@blueprint.get("/v1/exports/contacts")
@endpoint(scope="contacts:read", media_types=FORMATS)
async def export_contacts(principal: Principal, query: ContactExportQuery, exporter: Exporter) -> Response:
    """Export contacts."""
    return await _respond(exporter, principal, exports.export_contacts(query), query)


@blueprint.get("/v1/exports/campaign-contacts")
@endpoint(scope="campaigns:read", media_types=FORMATS, errors=[NotFound])
async def export_campaign_contacts(principal: Principal, query: CampaignExportQuery, exporter: Exporter) -> Response:
    """Export a campaign's contacts with their results."""
    return await _respond(exporter, principal, exports.export_campaign_contacts(query.campaign_id), query)


@blueprint.get("/v1/exports/usage")
@endpoint(scope="billing:read", media_types=FORMATS)
async def export_usage(principal: Principal, query: ExportQuery, exporter: Exporter) -> Response:
    """Export the usage of the last twelve months."""
    return await _respond(exporter, principal, exports.export_usage(), query)


async def _respond(exporter: Exporter, principal: Principal, export: Export, query: ExportQuery) -> Response:
    return await exporter.respond(principal.organization_id, export, query.format, actor=principal.actor)
