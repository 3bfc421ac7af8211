"""Export what an organization has about one phone number, as a ZIP archive (docs/how-to/data-subject-requests.md)."""

import json
from collections import Counter
from dataclasses import dataclass
from mimetypes import guess_extension
from typing import BinaryIO, Final
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from sqlmodel import SQLModel

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, is_among
from switchboard.foundation.object_store import ObjectNotFound
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.privacy.queries import (
    Row,
    get_key,
    list_matching_rows,
    list_recorded_calls,
    list_searched_tables,
    match_party,
    read_mentions,
)
from switchboard.resources.sms.media import build_media_key
from switchboard.resources.sms.models import SmsMedia
from switchboard.resources.sms.queries import list_stored_media
from switchboard.resources.stored_files import StoredObject

DATA_FILE: Final = "data.json"
CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PersonExporter:
    database: Database
    archive: RecordingArchive

    async def export(self, organization_id: UUID, phone_number: str, file: BinaryIO, *, actor: str) -> Counter[str]:
        """Write an archive to `file`, and return the number of rows by table, and of recordings.

        `data.json` has the rows about the person by table, the transcripts of their calls, and in `mentions` the ids of
        other rows whose text has the number. `recordings/` has the recordings as they are stored, and `media/` the
        files of their text messages. Raises `ObjectStoreAway`.
        """
        async with self.database.write(organization_id, actor=actor) as session:
            data = await _read_rows(session, phone_number)
            mentions = await _list_mentions(session, NumberPattern(phone_number))
            counted = Counter({name: len(rows) for name, rows in data.items()})
            record_audit(session, AuditAction.PERSON_EXPORTED, organization_id, fields=+counted)
            recorded = await list_recorded_calls(session, phone_number)
            files = await list_stored_media(session, [row["id"] for row in data["sms_message"]])
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            content = {"phone_number": phone_number, **data, "mentions": mentions}
            archive.writestr(DATA_FILE, json.dumps(content, default=str, ensure_ascii=False, indent=1))
            for call in recorded:
                if (stored := await self.archive.find(call)) is not None:
                    await self._copy(archive, f"recordings/{call.id}.{call.recording_format}", stored)
                    counted["recording"] += 1
            for media in files:
                counted["sms_media"] += await self._add_media(archive, media)
        return +counted

    async def _add_media(self, archive: ZipFile, media: SmsMedia) -> bool:
        """Copy a file of a text message; return whether the store has it."""
        try:
            stored = await self.archive.find_file(
                media.organization_id, build_media_key(media.organization_id, media.id)
            )
        except ObjectNotFound:
            return False
        await self._copy(archive, f"media/{media.id}{guess_extension(media.content_type or '') or ''}", stored)
        return True

    async def _copy(self, archive: ZipFile, name: str, stored: StoredObject) -> None:
        with archive.open(name, "w", force_zip64=True) as file:
            async for part in self.archive.iterate(stored, CHUNK_BYTES):
                file.write(part)


async def _read_rows(session: ReadSession, phone_number: str) -> dict[str, list[Row]]:
    """Read the rows about the person, by table."""
    found = {}
    for table in list_searched_tables():
        about = match_party(table, phone_number)
        if about is not None:
            found[table.name] = await list_matching_rows(session, table, about)
    transcripts = SQLModel.metadata.tables["transcript_line"]
    theirs = is_among(transcripts.c.call_id, [call["id"] for call in found["call"]])
    found[transcripts.name] = await list_matching_rows(session, transcripts, theirs)
    return found


async def _list_mentions(session: ReadSession, pattern: NumberPattern) -> list[str]:
    """List the other rows whose text has the number: the table and the key of each."""
    found = []
    for table in list_searched_tables():
        after, is_over = None, False
        while not is_over:
            rows, after = await read_mentions(session, table, pattern, after=after)
            found += [" ".join([table.name, *map(str, get_key(table, row))]) for row in rows]
            is_over = after is None
    return found
