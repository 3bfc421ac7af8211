"""Fetch files of received text messages from their carriers, and store them beside the recordings."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.encryption.content import is_unreadable
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.plugin_sdk import MessageFile, ProviderError, TelephonyProvider
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.sms.media import build_media_key, lock_media
from switchboard.resources.sms.models import SmsMedia, SmsMessage

logger = structlog.get_logger()
MAX_MEDIA_BYTES: Final = 5 * 1024 * 1024
"""The most that Twilio passes on (https://www.twilio.com/docs/messaging/guides/accepted-mime-types)."""
MEDIA_TYPES: Final = frozenset(
    (
        "application/pdf", "application/vcard", "image/bmp", "image/gif", "image/heic", "image/heif", "image/jpeg",
        "image/jpg", "image/png", "image/tiff", "image/webp", "text/calendar", "text/csv", "text/directory",
        "text/plain", "text/vcard", "text/x-vcard",
    )
)  # fmt: skip
"""Content types besides audio and video. A browser runs none of them as a page."""
FETCH_SECONDS: Final = 45.0
LEASE: Final = timedelta(seconds=60)
RETRY_AFTER: Final = timedelta(seconds=30)
MAX_ATTEMPTS: Final = 5


class MediaRefused(Exception):
    """A file that is not stored. The message says why."""


@dataclass(frozen=True, slots=True)
class MediaFetcher:
    """Fetches files from carriers and stores them."""

    database: Database
    providers: Providers
    archive: RecordingArchive

    async def fetch(self, organization_id: UUID, media_id: UUID) -> None:
        """Fetch a file that is due, unless another worker does."""
        claimed = await self._claim(organization_id, media_id)
        if claimed is None:
            return
        media, carrier = claimed
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content_type, content = await self._read(media, carrier)
                key = build_media_key(organization_id, media_id)
                await self.archive.put_file(organization_id, key, BytesIO(content), content_type)
        except MediaRefused as error:
            await self._settle(media, error=str(error))
        except ProviderError as error:
            await self._settle(media, error=error.message, final=not error.retryable)
        except (ObjectStoreAway, TimeoutError) as error:
            await self._settle(media, error=str(error) or "the file took too long", final=False)
        else:
            await self._settle(media, content_type=content_type)

    async def _claim(self, organization_id: UUID, media_id: UUID) -> tuple[SmsMedia, str] | None:
        async with self.database.tenant(organization_id) as session:
            media = await lock_media(session, media_id)
            if media is None or media.fetch_due_at is None or media.fetch_due_at > now():
                return None
            if media.carrier_url is None or is_unreadable(media.carrier_url):
                media.fetch_due_at, media.error_message = None, "the address of the file was lost"
                return None
            media.attempts += 1
            media.fetch_due_at = now() + LEASE
            return media, (await session.get_one(SmsMessage, media.message_id)).carrier

    async def _read(self, media: SmsMedia, carrier: str) -> tuple[str, bytes]:
        async with self.providers.use(media.organization_id, TelephonyProvider, carrier) as provider:
            return await _read_stream(await provider.fetch_media(media.carrier_url or ""))

    async def _settle(
        self, fetched: SmsMedia, *, content_type: str | None = None, error: str | None = None, final: bool = True
    ) -> None:
        """Record the result; a file whose message was deleted meanwhile is deleted, too."""
        async with self.database.tenant(fetched.organization_id) as session:
            media = await lock_media(session, fetched.id)
            if media is not None:
                media.content_type, media.error_message = content_type, error
                if final or media.attempts >= MAX_ATTEMPTS:
                    media.fetch_due_at = media.carrier_url = None
                else:
                    media.fetch_due_at = now() + RETRY_AFTER
        if media is None:
            await self.archive.delete_file(build_media_key(fetched.organization_id, fetched.id))
        elif error is not None:
            logger.warning("a file of a text message was not fetched", media_id=str(media.id), error=error)


async def _read_stream(stream: MessageFile) -> tuple[str, bytes]:
    """Read a file whole. Raises `MediaRefused` for a type or size that is not stored."""
    content_type = stream.content_type.lower()
    content = bytearray()
    async for chunk in stream.chunks:
        content += chunk
        if len(content) > MAX_MEDIA_BYTES:
            raise MediaRefused(f"it is larger than {MAX_MEDIA_BYTES} bytes")
    if content_type not in MEDIA_TYPES and not content_type.startswith(("audio/", "video/")):
        raise MediaRefused(f"files of type {content_type} are not stored")
    return content_type, bytes(content)
