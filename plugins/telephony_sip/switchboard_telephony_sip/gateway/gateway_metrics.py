"""Metrics of a gateway, served with the platform's own."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from switchboard_telephony_sip.gateway.outcomes import CallEnd


class GatewayMetrics:
    """Calls of this gateway that ended or were not begun, its live calls and registrations, and ignored addresses."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "switchboard_sip_calls", "SIP calls that ended", ["direction", "outcome"], registry=registry
        )
        self.live = Gauge("switchboard_sip_live_calls", "Live SIP calls of the gateway", registry=registry)
        self.registered = Gauge(
            "switchboard_sip_registered_trunks", "Trunks at which the gateway is registered", registry=registry
        )
        self.unregistered = Gauge(
            "switchboard_sip_unregistered_trunks",
            "Trunks at which the gateway should be registered, and is not",
            registry=registry,
        )

        self.limited = Counter(
            "switchboard_sip_limited_calls", "SIP calls refused at a limit of their trunk", ["limit"], registry=registry
        )
        self.bans = Counter("switchboard_sip_bans", "Addresses that the gateway began to ignore", registry=registry)
        self.ignored = Gauge(
            "switchboard_sip_ignored_addresses", "Addresses that the gateway ignores now", registry=registry
        )
        for limit in ("max_calls", "calls_per_second"):
            self.limited.labels(limit)

    def count(self, direction: str, end: CallEnd) -> None:
        """Count a call that ended."""
        self._calls.labels(direction, end.outcome).inc()
