"""HTTP responses with files of received text messages, and links to the files that need no credential for a while."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from quart import Response

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, Unavailable
from switchboard.foundation.web.signed_links import SignedLinks
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.file_formats import RecordingDamaged
from switchboard.resources.sms.media import build_media_key, get_media
from switchboard.resources.sms.models import SmsMedia
from switchboard.resources.sms_media.schemas import MediaLinkOut

PURPOSE: Final = "text message file link"
PATH: Final = "/sms-media/"


@dataclass(frozen=True, slots=True)
class MediaResponder:
    """Serves the stored files of messages."""

    settings: Settings
    database: Database
    keyring: KeyRing
    archive: RecordingArchive

    async def build_link(self, organization_id: UUID, media_id: UUID, *, actor: str) -> MediaLinkOut:
        """Build a link to a file, valid for 15 minutes. The audit log has that `actor` reads the file.

        Raises `NotFound` and `Unavailable` as `respond` does, but for the store, which is not asked.
        """
        media = await self._find_received(organization_id, media_id, actor)
        token, expires_at = self._links.sign(organization_id, media_id)
        url = f"{self.settings.base_url}{PATH}{token}"
        return MediaLinkOut(url=url, expires_at=expires_at, content_type=media.content_type or "")

    async def follow_link(self, token: str) -> Response:
        """Return the file of a link. Raises as `respond`, and `NotFound` for a link that has expired."""
        return await self.respond(*self._links.read(token))

    async def respond(self, organization_id: UUID, media_id: UUID, *, actor: str | None = None) -> Response:
        """Return a file, which browsers save and do not show: anybody can send one. The audit log has that `actor`
        reads it.

        Raises `NotFound`, also for a file that was refused or whose key was destroyed, and `Unavailable` while it is
        being fetched or the store cannot be reached.
        """
        media = await self._find_received(organization_id, media_id, actor)
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

    async def _find_received(self, organization_id: UUID, media_id: UUID, actor: str | None) -> SmsMedia:
        async with self.database.tenant(organization_id, actor=actor) as session:
            media = await get_media(session, media_id)
            if media.content_type is not None:
                record_audit(session, AuditAction.SMS_MEDIA_READ, media_id)
                return media
        if media.fetch_due_at is not None:
            raise Unavailable("The file is being fetched from the carrier.")
        raise NotFound(f"The file was not received: {media.error_message}.")

    @property
    def _links(self) -> SignedLinks:
        return SignedLinks(self.keyring, PURPOSE)
