"""Files of text messages: those that we send are fetched by the carrier; those that we receive are fetched from it at
once, stored beside the recordings, and served by us (`switchboard.resources.sms_media`).
"""

from collections.abc import Sequence
from uuid import UUID

from sqlmodel import col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession, is_among, new_id
from switchboard.foundation.jobs import wake
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.outbound.fields import validate_public_url
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.sms.models import SmsMedia, SmsMessage
from switchboard.resources.sms.schemas import SmsCreate


def check_media_urls(outbound: OutboundClient, data: SmsCreate) -> SmsCreate:
    """Return a message whose files have addresses that anybody, and so the carrier, can fetch.

    Raises `ValidationFailed` for another address.
    """
    for url in data.media_urls:
        validate_public_url(outbound, url, field="media_urls")
    return data


async def save_media(session: TenantSession, message: SmsMessage, carrier_urls: Sequence[str], base_url: str) -> None:
    """Save the files of a new inbound message to be fetched, and give the message our addresses of them."""
    files = [
        SmsMedia(id=new_id(), organization_id=message.organization_id, message_id=message.id, carrier_url=url)
        for url in carrier_urls
    ]
    message.media_urls = [f"{base_url}/v1/sms/media/{file.id}" for file in files]
    session.add(message)
    await session.flush()
    session.add_all(files)
    for file in files:
        wake(session, "fetch_media", organization_id=str(file.organization_id), media_id=str(file.id))


async def get_media(session: TenantSession, media_id: UUID) -> SmsMedia:
    """Return a file. Raises `NotFound`."""
    found = (await session.exec(_select_media(session, media_id))).one_or_none()
    if found is None:
        raise NotFound
    return found


async def list_stored_media(session: TenantSession, message_ids: Sequence[UUID]) -> Sequence[SmsMedia]:
    """List the stored files of messages."""
    rows = session.select(SmsMedia).where(
        is_among(col(SmsMedia.message_id), message_ids), col(SmsMedia.content_type).is_not(None)
    )
    return (await session.exec(rows)).all()


def build_media_key(organization_id: UUID, media_id: UUID) -> str:
    """Build the key of a file, beside the organization's recordings."""
    return f"{organization_id}/media/{media_id}"


def _select_media(session: TenantSession, media_id: UUID) -> SelectOfScalar[SmsMedia]:
    return session.select(SmsMedia).where(col(SmsMedia.id) == media_id)


async def lock_media(session: TenantSession, media_id: UUID) -> SmsMedia | None:
    """Return a file, locked; None if its message was deleted."""
    return (await session.exec(_select_media(session, media_id).with_for_update())).one_or_none()
