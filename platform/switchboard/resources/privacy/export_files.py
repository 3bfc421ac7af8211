"""Files of exports in the store, and links to them that need no credential for a while."""

from dataclasses import dataclass
from typing import Final

from quart import Response

from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, Unavailable
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.schemas import ExportLinkOut
from switchboard.resources.privacy.service import has_file
from switchboard.resources.stored_files import FileDamaged

EXPORT_CONTENT_TYPE: Final = "application/zip"
PURPOSE: Final = "export link"
CHUNK_BYTES: Final = 256 * 1024


def build_export_key(request: PrivacyRequest) -> str:
    """Build the key of an export's file, beside the organization's recordings."""
    return f"{request.organization_id}/exports/{request.id}.zip"


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """Links to the files of exports, and responses with them."""

    settings: Settings
    database: Database
    keyring: KeyRing
    archive: RecordingArchive

    def build_link(self, request: PrivacyRequest) -> ExportLinkOut:
        """Build a link to an export's file, valid for 15 minutes."""
        token, expires_at = self._links.sign_link(request.organization_id, request.id)
        return ExportLinkOut(url=f"{self.settings.base_url}/exports/{token}", expires_at=expires_at)

    async def respond(self, token: str) -> Response:
        """Stream the file of a link. Raises `NotFound`, also for an expired link, and `Unavailable`."""
        organization_id, request_id = self._links.read_link(token)
        async with self.database.read(organization_id) as session:
            request = await get_row(session, PrivacyRequest, request_id)
        if not has_file(request):
            raise NotFound("The file has been deleted.")
        try:
            stored = await self.archive.find_file(organization_id, build_export_key(request))
        except ObjectNotFound:
            raise NotFound("The file has been deleted.") from None
        except (ObjectStoreAway, FileDamaged) as error:
            raise Unavailable("The file cannot be read at the moment.") from error
        response = Response(self.archive.iterate(stored, CHUNK_BYTES), content_type=EXPORT_CONTENT_TYPE)
        response.timeout = None
        response.content_length = stored.size
        response.headers["Content-Disposition"] = f'attachment; filename="export-{request.id}.zip"'
        response.headers["Cache-Control"] = "no-store"
        return response

    @property
    def _links(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE)
