"""Limits of the carrier that sends a text message: its segments, and its files."""

from collections.abc import Sequence

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import ProviderSettings, TelephonyProvider, TextEncoding
from switchboard.plugin_sdk.registry import Registry


def find_encoding(session: TenantSession, carrier: str) -> TextEncoding:
    """Return a carrier's encoding; the usual one for a carrier whose plugin is not installed."""
    return _find_carrier(session, carrier).text_encoding


def require_sendable_media(session: TenantSession, carrier: str, media_urls: Sequence[str]) -> None:
    """Raise `ValidationFailed` for more files than the carrier sends with a text message."""
    most = _find_carrier(session, carrier).capabilities.max_media
    if len(media_urls) > most:
        raise ValidationFailed.field(
            "media_urls",
            f"{carrier} sends at most {most} files with a text message" if most else f"{carrier} sends no files",
        )


def count_sendable_segments(session: TenantSession, carrier: str, body: str) -> int:
    """Count the segments of a message. Raises `ValidationFailed` if the carrier would refuse that many."""
    encoding = find_encoding(session, carrier)
    segments = encoding.count_segments(body)
    if not encoding.can_send(segments):
        raise ValidationFailed.field(
            "body",
            f"has {segments} segments, and {carrier} sends at most {encoding.max_segments}; shorten it, or leave out "
            "characters that need two bytes each",
        )
    return segments


def _find_carrier(session: TenantSession, carrier: str) -> type[TelephonyProvider[ProviderSettings]]:
    registry: Registry = session.info["registry"]
    return registry.find_provider_class(TelephonyProvider, carrier) or TelephonyProvider
