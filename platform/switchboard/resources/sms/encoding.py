"""Segments of a text message at the carrier that sends it."""

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import TelephonyProvider, TextEncoding
from switchboard.plugin_sdk.registry import Registry


def find_encoding(session: TenantSession, carrier: str) -> TextEncoding:
    """Return a carrier's encoding; the usual one for a carrier whose plugin is not installed."""
    registry: Registry = session.info["registry"]
    provider = registry.find_provider_class(TelephonyProvider, carrier)
    return TelephonyProvider.text_encoding if provider is None else provider.text_encoding


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
