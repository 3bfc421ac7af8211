"""URLs that a carrier gets for one call: its callbacks and its media socket."""

from dataclasses import dataclass
from uuid import UUID

from itsdangerous import BadSignature, URLSafeSerializer

from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import CallbackUrls

PURPOSE = "media socket"


@dataclass(frozen=True, slots=True)
class MediaGrant:
    """The call that the holder of a media socket's `token` may connect."""

    organization_id: UUID
    call_id: UUID
    carrier: str
    token: str


def build_media_url(settings: Settings, keyring: KeyRing, *, carrier: str, organization_id: UUID, call_id: UUID) -> str:
    """Build the URL of the call's media socket, which only its receiver can open.

    The token is in the path, because Twilio drops query strings.
    """
    token = _serializer(keyring).dumps([organization_id.hex, call_id.hex, carrier])
    return format_media_url(settings, token)


def read_media_token(keyring: KeyRing, token: str) -> MediaGrant | None:
    """Return the content of a media socket's token, or None if it is not ours."""
    try:
        organization_id, call_id, carrier = _serializer(keyring).loads(token)
        return MediaGrant(UUID(organization_id), UUID(call_id), str(carrier), token)
    except (BadSignature, ValueError, TypeError, AttributeError):
        return None


def build_call_callback_urls(settings: Settings, *, carrier: str, organization_id: UUID, call_id: UUID) -> CallbackUrls:
    """Build the callback URLs of one call.

    They contain our id, because a callback may overtake the carrier's response.
    """
    return CallbackUrls(events=f"{settings.base_url}/carriers/{carrier}/{organization_id}/calls/{call_id}")


def format_media_url(settings: Settings, token: str) -> str:
    """Return the URL of the media socket with this token.

    A call keeps the token that the carrier got: a carrier may have signed its URL, and other keys make other tokens.
    """
    scheme, _, rest = settings.base_url.partition("://")
    return f"{'wss' if scheme == 'https' else 'ws'}://{rest}/media/{token}"


def _serializer(keyring: KeyRing) -> URLSafeSerializer:
    return URLSafeSerializer(keyring.derive(PURPOSE), salt=PURPOSE)
