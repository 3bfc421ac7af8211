"""Field type of an address in requests."""

from switchboard.foundation.outbound.client import OutboundClient
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk.public_addresses import ForbiddenAddress


def validate_public_url(outbound: OutboundClient, url: str | None, *, field: str) -> str | None:
    """Return the address to save; None without one. Raises `ValidationFailed` for an address that requests may not go
    to.
    """
    try:
        return None if url is None else outbound.check_url(url)
    except ForbiddenAddress as error:
        raise ValidationFailed.field(field, str(error)) from None
