"""The HTTP client for tenant-supplied addresses: webhooks, forward webhooks, automation requests."""

from switchboard.foundation.outbound.client import OutboundAnswer, OutboundClient, OutboundError

__all__ = ["OutboundAnswer", "OutboundClient", "OutboundError"]
