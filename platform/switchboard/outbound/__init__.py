"""The one HTTP client for addresses that tenants chose: webhooks, forward webhooks, automation requests."""

from switchboard.outbound.addresses import ForbiddenAddress
from switchboard.outbound.client import OutboundAnswer, OutboundClient, OutboundError

__all__ = ["ForbiddenAddress", "OutboundAnswer", "OutboundClient", "OutboundError"]
