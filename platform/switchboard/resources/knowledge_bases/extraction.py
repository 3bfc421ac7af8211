"""Extract a document's text by its media type, in the form that `chunking` understands: paragraphs separated,
headings after `#`.

The media type is taken at its word: content that does not parse is refused.
"""

import asyncio
import base64
import binascii
import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from uuid import UUID

from pydantic import JsonValue

from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.knowledge_bases import parser_process
from switchboard.resources.knowledge_bases.formats import (
    DOCX,
    HTML,
    MAX_CONTENT_BYTES,
    MAX_TEXT_CHARACTERS,
    PDF,
    TOO_LARGE,
    TOO_MUCH_TEXT,
    FormatError,
)

ENDINGS = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": HTML,
    ".htm": HTML,
    ".csv": "text/csv",
    ".json": "application/json",
    ".pdf": PDF,
    ".docx": DOCX,
}
CONFINED = (HTML, PDF, DOCX)
"""Media types that are parsed in a separate process."""
BYTE_ORDER_MARK = "\ufeff"
"""Byte order mark that Excel and other programs write before UTF-8; it is not part of the text."""
MAX_DEPTH = 64
MAX_NAME = 100
"""Maximum characters of a column name, or of the path to a value, repeated before each value."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text, its media type, and its size in bytes."""

    text: str
    content_type: str
    size: int


async def extract_text(organization_id: UUID, filename: str, content: str, content_type: str | None) -> Extracted:
    """Extract the text of a document as sent. Raises `ValidationFailed`."""
    kind, content = _choose_type(filename, content_type), content.removeprefix(BYTE_ORDER_MARK)
    if kind not in (PDF, DOCX):
        return await _extract(organization_id, kind, content.encode(), content)
    try:
        data = base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValidationFailed.field("content", "must be the file's bytes as base64") from None
    return await _extract(organization_id, kind, data, content)


async def extract_file(organization_id: UUID, filename: str, data: bytes) -> Extracted:
    """Extract the text of a file; the extension of its name determines the media type. Raises `ValidationFailed`."""
    if len(data) > MAX_CONTENT_BYTES:
        raise ValidationFailed.field("content", TOO_LARGE)
    kind = ENDINGS.get(PurePath(filename).suffix.lower())
    if kind is None:
        raise ValidationFailed.field("content", f"has an unsupported file type; supported: {' '.join(ENDINGS)}")
    if kind not in READERS:
        return await _extract(organization_id, kind, data, "")
    try:
        return await _extract(organization_id, kind, data, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValidationFailed.field("content", "is not text in UTF-8; save it as UTF-8") from None


async def _extract(organization_id: UUID, kind: str, data: bytes, content: str) -> Extracted:
    try:
        text = await (
            asyncio.to_thread(READERS[kind], content)
            if kind in READERS
            else parser_process.parse_file(organization_id, kind, data)
        )
    except FormatError as error:
        raise ValidationFailed.field("content", str(error)) from None
    # NUL and unpaired surrogates, which JSON escapes and broken files can contain, and the database cannot store.
    text = text.replace("\0", "").encode(errors="replace").decode().strip()
    if not text:
        scanned = " (scanned pages are not read)" if kind == PDF else ""
        raise ValidationFailed.field("content", f"contains no text{scanned}")
    return Extracted(text, kind, len(data))


def _choose_type(filename: str, content_type: str | None) -> str:
    if content_type is None:
        return ENDINGS.get(PurePath(filename).suffix.lower(), "text/plain")
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in READERS and kind not in CONFINED:
        raise ValidationFailed.field(
            "content_type", f"{kind or 'nothing'} is not supported; supported: {', '.join([*READERS, *CONFINED])}"
        )
    return kind


def _as_it_is(content: str) -> str:
    return content.replace("\r\n", "\n").replace("\r", "\n")


def extract_markdown_text(content: str) -> str:
    """Return Markdown without comments, which readers do not see."""
    text, parts, place = _as_it_is(content), [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[place:start])
        place = end + 3
    return "".join([*parts, text[place:]])


def extract_csv_text(content: str) -> str:
    """Render a paragraph per row, with each value after its column's name, so that a row can be understood alone.
    Raises `FormatError`.
    """
    delimiter = max(",;\t|", key=content.lstrip().partition("\n")[0].count)
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise FormatError(f"is not CSV: {error}") from None
    if len(rows) < 2:
        return "\n".join(", ".join(row) for row in rows)
    names = [name.strip()[:MAX_NAME] or f"column {place}" for place, name in enumerate(rows[0], 1)]
    names += [f"column {place}" for place in range(len(names) + 1, max(map(len, rows)) + 1)]
    cells = ([(name, cell.strip()) for name, cell in zip(names, row, strict=False)] for row in rows[1:])
    return _join_bounded("\n\n", ("; ".join(f"{name}: {cell}" for name, cell in row if cell) for row in cells))


def extract_json_text(content: str) -> str:
    """Render a line per value after its path, and a paragraph per entry of the outermost list or object. Raises
    `FormatError`.
    """
    try:
        value: JsonValue = json.loads(content)
        return _join_bounded("\n\n", (_join_bounded("\n", _lines(entry, path, 0)) for path, entry in _entries(value)))
    except (ValueError, RecursionError) as error:
        parse_error = (
            str(error)
            if isinstance(error, json.JSONDecodeError | FormatError)
            else "nested too deeply, or a number too long"
        )
        raise FormatError(f"is not readable JSON: {parse_error}") from None


def _entries(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        yield from ((name[-MAX_NAME:], entry) for name, entry in value.items())
    elif isinstance(value, list):
        yield from (("", entry) for entry in value)
    else:
        yield "", value


def _lines(value: JsonValue, path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise FormatError(f"deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _lines(part, f"{path} {name}".strip()[-MAX_NAME:], depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _lines(part, path, depth + 1)
    elif value is not None and value != "":
        value_text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        yield f"{path}: {value_text}" if path else value_text


def _join_bounded(between: str, parts: Iterable[str]) -> str:
    """Join parts up to the size limit, because the repeated names can multiply a text. Raises `FormatError`."""
    kept, size = [], 0
    for part in parts:
        kept.append(part)
        size += len(part) + len(between)
        if size > MAX_TEXT_CHARACTERS:
            raise FormatError(TOO_MUCH_TEXT)
    return between.join(kept)


READERS: Mapping[str, Callable[[str], str]] = {
    "text/plain": _as_it_is,
    "text/markdown": extract_markdown_text,
    "text/csv": extract_csv_text,
    "application/json": extract_json_text,
}
