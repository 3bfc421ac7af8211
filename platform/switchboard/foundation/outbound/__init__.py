"""The one HTTP client for addresses that tenants chose: webhooks, forward webhooks, automation requests."""

from switchboard.foundation.outbound.addresses import ForbiddenAddress
from switchboard.foundation.outbound.client import OutboundAnswer, OutboundClient, OutboundError

__all__ = ["ForbiddenAddress", "OutboundAnswer", "OutboundClient", "OutboundError"]
