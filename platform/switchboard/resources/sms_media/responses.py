"""HTTP responses with files of received text messages."""

from dataclasses import dataclass
from uuid import UUID

from quart import Response

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.foundation.web.errors import NotFound, Unavailable
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.file_formats import RecordingDamaged
from switchboard.resources.sms.media import build_media_key, get_media


@dataclass(frozen=True, slots=True)
class MediaResponder:
    """Serves the stored files of messages."""

    database: Database
    archive: RecordingArchive

    async def respond(self, organization_id: UUID, media_id: UUID, *, actor: str) -> Response:
        """Return a file, which browsers save and do not show: anybody can send one. The audit log has that `actor`
        reads it.

        Raises `NotFound`, also for a file that was refused or whose key was destroyed, and `Unavailable` while it is
        being fetched or the store is away.
        """
        async with self.database.tenant(organization_id, actor=actor) as session:
            media = await get_media(session, media_id)
            if media.content_type is not None:
                record_audit(session, AuditAction.SMS_MEDIA_READ, media_id)
        if media.content_type is None and media.fetch_due_at is not None:
            raise Unavailable("The file is being fetched from the carrier.")
        if media.content_type is None:
            raise NotFound(f"The file was not received: {media.error_message}.")
        try:
            stored = await self.archive.find_file(organization_id, build_media_key(organization_id, media_id))
            content = await self.archive.read(stored, 0, stored.size)
        except ObjectNotFound:
            raise NotFound("The file has been deleted.") from None
        except (ObjectStoreAway, RecordingDamaged) as error:
            raise Unavailable("The file cannot be read at the moment.") from error
        response = Response(content, content_type=media.content_type)
        response.headers["Content-Disposition"] = f'attachment; filename="{media.id}"'
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "private, no-store"
        return response
