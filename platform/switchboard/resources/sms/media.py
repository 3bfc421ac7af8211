"""Files of text messages: those that we send are fetched by the carrier; those that we receive are fetched from it at
once, stored beside the recordings, and served by us.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from typing import Final
from uuid import UUID

import structlog
from quart import Response

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, Unavailable
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.plugin_sdk import MessageFile, ProviderError, TelephonyProvider
from switchboard.resources.sms.models import SmsMedia, SmsMessage
from switchboard.resources.sms.schemas import MediaLinkOut, SmsCreate
from switchboard.resources.stored_files import FileArchive, FileDamaged


def check_media_urls(outbound: OutboundClient, data: SmsCreate) -> SmsCreate:
    """Return a message whose files have addresses that anybody, and so the carrier, can fetch.

    Raises `ValidationFailed` for another address.
    """
    for url in data.media_urls:
        validate_public_url(outbound, url, field="media_urls")
    return data


async def save_media(session: WriteSession, message: SmsMessage, carrier_urls: Sequence[str], base_url: str) -> None:
    """Save the files of a new inbound message to be fetched, and give the message our addresses of them."""
    files = [
        SmsMedia(organization_id=message.organization_id, message_id=message.id, carrier_url=Content(url))
        for url in carrier_urls
    ]
    message.media_urls = Content([f"{base_url}/v1/sms/media/{file.id}" for file in files])
    await seal_content(session, message, *files)
    session.add(message)
    await session.flush()  # The files refer to the message.
    session.add_all(files)
    if files:
        session.wake("fetch_media")


def build_media_key(organization_id: UUID, media_id: UUID) -> str:
    """Build the key of a file, beside the organization's recordings."""
    return f"{organization_id}/media/{media_id}"


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


async def fetch_media(
    database: Database, providers: Providers, archive: FileArchive, *, organization_id: UUID, media_id: UUID
) -> None:
    """Fetch a file of an inbound message from the carrier, and store it, unless another worker does."""
    claimed = await _claim(database, organization_id, media_id)
    if claimed is None:
        return
    media, carrier = claimed
    content_type, fault, is_final = None, None, True
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            async with providers.use(organization_id, TelephonyProvider, carrier) as provider:
                content_type, content = await _read_stream(await provider.fetch_media(media.carrier_url.value or ""))
            key = build_media_key(organization_id, media_id)
            await archive.put_file(organization_id, key, BytesIO(content), content_type)
    except MediaRefused as error:
        fault = str(error)
    except ProviderError as error:
        fault, is_final = error.message, not error.retryable
    except (ObjectStoreAway, TimeoutError) as error:
        fault, is_final = str(error) or "the file took too long", False
    # A file whose message was deleted meanwhile is deleted, too.
    async with database.write(organization_id) as session:
        stored = await session.lock(SmsMedia, media_id)
        if stored is not None:
            stored.content_type, stored.error_message = None if fault else content_type, fault
            if is_final or stored.attempts >= MAX_ATTEMPTS:
                stored.fetch_due_at, stored.carrier_url = None, Content(None)
            else:
                stored.fetch_due_at = now() + RETRY_AFTER
    if stored is None:
        await archive.delete_file(build_media_key(organization_id, media_id))
    elif fault is not None:
        logger.warning("a file of a text message was not fetched", media_id=str(media_id), error=fault)


async def _claim(database: Database, organization_id: UUID, media_id: UUID) -> tuple[SmsMedia, str] | None:
    async with database.write(organization_id) as session:
        media = await session.lock(SmsMedia, media_id)
        if media is None or media.fetch_due_at is None or media.fetch_due_at > now():
            return None
        await open_content(session, media)
        if not (media.carrier_url.value and media.carrier_url.is_readable):
            media.fetch_due_at, media.error_message = None, "the address of the file was lost"
            return None
        media.attempts += 1
        media.fetch_due_at = now() + LEASE
        return media, (await session.get_one(SmsMessage, media.message_id)).carrier


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


PURPOSE: Final = "text message file link"
PATH: Final = "/sms-media/"


@dataclass(frozen=True, slots=True)
class MediaResponder:
    settings: Settings
    database: Database
    keyring: KeyRing
    archive: FileArchive

    async def build_link(self, organization_id: UUID, media_id: UUID, *, actor: str) -> MediaLinkOut:
        """Build a link to a file, valid for 15 minutes. The audit log has that `actor` reads the file.

        Raises `NotFound` and `Unavailable` as `respond` does, but for the store, which is not asked.
        """
        media = await self._find_received(organization_id, media_id, actor)
        token, expires_at = self._links.sign_link(organization_id, media_id)
        url = f"{self.settings.base_url}{PATH}{token}"
        return MediaLinkOut(url=url, expires_at=expires_at, content_type=media.content_type or "")

    async def follow_link(self, token: str) -> Response:
        """Return the file of a link. Raises as `respond`, and `NotFound` for a link that has expired."""
        return await self.respond(*self._links.read_link(token))

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
        except (ObjectStoreAway, FileDamaged) as error:
            raise Unavailable("The file cannot be read at the moment.") from error
        response = Response(content, content_type=media.content_type)
        response.headers["Content-Disposition"] = f'attachment; filename="{media.id}"'
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "private, no-store"
        return response

    async def _find_received(self, organization_id: UUID, media_id: UUID, actor: str | None) -> SmsMedia:
        async with self.database.write(organization_id, actor=actor) as session:
            media = await get_row(session, SmsMedia, media_id)
            if media.content_type is not None:
                record_audit(session, AuditAction.SMS_MEDIA_READ, media_id)
                return media
        if media.fetch_due_at is not None:
            raise Unavailable("The file is being fetched from the carrier.")
        raise NotFound(f"The file was not received: {media.error_message}.")

    @property
    def _links(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE)
