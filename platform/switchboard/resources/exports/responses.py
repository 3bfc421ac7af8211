"""Streams exports. Each batch has a transaction of its own, so that a slow reader holds neither rows nor a connection.

Rows that are created meanwhile are not exported.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from quart import Response

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
from switchboard.resources.exports.encoding import CONTENT_TYPES, encode_header, encode_rows
from switchboard.resources.exports.schemas import ExportFormat
from switchboard.resources.exports.service import Batch, Export


@dataclass(frozen=True, slots=True)
class Exporter:
    """Streams exports of organizations, and records each in the audit log before it begins."""

    database: Database

    async def respond(
        self, organization_id: UUID, export: Export, export_format: ExportFormat, *, actor: str
    ) -> Response:
        """Return the response that streams the export. Raises what the reader of the first batch raises."""
        async with self.database.tenant(organization_id, actor=actor) as session:
            first = await export.read(session, None)
            record_audit(session, AuditAction.DATA_EXPORTED, export.name, fields=export.filters)
        response = Response(
            self._iterate(organization_id, export, export_format, first),
            headers={"Content-Disposition": f'attachment; filename="{export.name}.{export_format}"'},
            content_type=CONTENT_TYPES[export_format],
        )
        response.timeout = None  # a million rows take longer than a page
        return response

    async def _iterate(
        self, organization_id: UUID, export: Export, export_format: ExportFormat, batch: Batch
    ) -> AsyncIterator[bytes]:
        if header := encode_header(export.model, export_format):
            yield header
        rows, last = batch
        while rows or last:
            if rows:
                # In a thread, because calls whose audio this process carries must not wait.
                yield await asyncio.to_thread(encode_rows, rows, export_format)
            if last is None:
                return
            async with self.database.tenant(organization_id) as session:
                rows, last = await export.read(session, last)
