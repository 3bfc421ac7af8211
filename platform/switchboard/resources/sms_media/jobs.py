"""Jobs of files of text messages."""

from uuid import UUID

from switchboard.resources.sms_media.fetching import MediaFetcher


async def fetch_media(fetcher: MediaFetcher, *, organization_id: str, media_id: str) -> None:
    """Fetch a file of an inbound message from the carrier."""
    await fetcher.fetch(UUID(organization_id), UUID(media_id))
