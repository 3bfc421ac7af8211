"""Links to recordings that need no credential for a while: the store's own, or ours with a signed token."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, Unavailable
from switchboard.foundation.web.signed_links import LINK_LIFETIME, SignedLinks
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.file_formats import FILE_FORMATS
from switchboard.resources.calls.schemas import RecordingLinkOut
from switchboard.resources.stored_files import FileDamaged

PURPOSE: Final = "recording link"


@dataclass(frozen=True, slots=True)
class RecordingLinks:
    """Builds and reads links to recordings."""

    settings: Settings
    keyring: KeyRing
    archive: RecordingArchive

    async def build_link(self, call: Call) -> RecordingLinkOut:
        """Build a link to a call's recording, valid for 15 minutes. The link to an encrypted recording is always our
        own.

        Raises `NotFound` if the call has no recording (yet), and `Unavailable` if the store cannot be reached or cannot
        sign.
        """
        token, expires_at = self._links.sign(call.organization_id, call.id)
        try:
            stored = await self.archive.find(call)
            if stored is not None and stored.sealed is None and self.archive.recordings.signs_urls:
                url = await self.archive.recordings.sign_url(stored.file.key, LINK_LIFETIME)
            elif stored is not None or call.carrier_recording_id is not None:
                url = f"{self.settings.base_url}/recordings/{token}"
            else:
                raise NotFound("The call has no recording.")
        except (ObjectStoreAway, FileDamaged) as error:
            raise Unavailable("The store cannot sign a link at the moment.") from error
        content_type = FILE_FORMATS[stored.audio_format].content_type if stored is not None else None
        return RecordingLinkOut(url=url, expires_at=expires_at, content_type=content_type)

    def read_token(self, token: str) -> tuple[UUID, UUID]:
        """Return organization and call of one of our links. Raises `NotFound` if it is not ours, or has expired."""
        return self._links.read(token)

    @property
    def _links(self) -> SignedLinks:
        return SignedLinks(self.keyring, PURPOSE)
