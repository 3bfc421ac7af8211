"""Streams exports. Each batch has a transaction of its own, so that a slow reader holds neither rows nor a connection.

Rows that are created meanwhile are not exported.
"""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pydantic import BaseModel, JsonValue
from quart import Response

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
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
        async with self.database.write(organization_id, actor=actor) as session:
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
            async with self.database.write(organization_id) as session:
                rows, last = await export.read(session, last)


# Rows as CSV (RFC 4180, UTF-8) and as JSON Lines.

CONTENT_TYPES: Final[dict[ExportFormat, str]] = {
    "csv": "text/csv; charset=utf-8; header=present",
    "jsonl": "application/jsonl; charset=utf-8",
}
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of cells that spreadsheets may calculate (OWASP, CSV Injection)."""
SEPARATED_FORMULA: Final = re.compile(r"""([;\t\r\n][\s"]*)(?=[=+@＝＋－＠-])(?!\+[0-9]{1,15}(?:[\s;"]|$))""")
"""A formula behind a character that separates cells in some languages of spreadsheets, whatever the quotation marks:
they count at the beginning of a cell only.
"""
PHONE_NUMBER: Final = re.compile(r"\+[0-9]{1,15}")


def encode_header(model: type[BaseModel], export_format: ExportFormat) -> bytes:
    """Return the header of a CSV file; nothing for JSON Lines."""
    return _write_csv([list(model.model_fields)]) if export_format == "csv" else b""


def encode_rows(rows: Sequence[BaseModel], export_format: ExportFormat) -> bytes:
    """Return rows as lines. Lists and objects are JSON in a cell of CSV, and null is an empty cell."""
    if export_format == "jsonl":
        return b"".join(row.model_dump_json().encode() + b"\n" for row in rows)
    return _write_csv([[_to_cell(value) for value in row.model_dump(mode="json").values()] for row in rows])


def _write_csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _to_cell(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _neutralize(value)
    return _neutralize(json.dumps(value, ensure_ascii=False)) if isinstance(value, list | dict) else json.dumps(value)


def _neutralize(text: str) -> str:
    """Return a text that spreadsheets do not calculate: an apostrophe goes before one that begins like a formula, and
    before each part of it that would, where another character than the comma separates cells. A phone number in E.164
    is a number and stays, so that the file can be imported again.
    """
    text = SEPARATED_FORMULA.sub(r"\1'", text)
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not PHONE_NUMBER.fullmatch(text) else text
