"""Metrics of a gateway, served with the platform's own."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from switchboard_telephony_sip.gateway.outcomes import CallEnd


class GatewayMetrics:
    """Calls of this gateway that ended or were not begun, its live calls and registrations, and ignored addresses."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._calls = counter("switchboard_sip_calls", "SIP calls that ended", ["direction", "outcome"])
        self.live = gauge("switchboard_sip_live_calls", "Live SIP calls of the gateway")
        self.registered = gauge("switchboard_sip_registered_trunks", "Trunks at which the gateway is registered")
        self.unregistered = gauge(
            "switchboard_sip_unregistered_trunks", "Trunks at which the gateway should be registered, and is not"
        )
        self.limited = counter(
            "switchboard_sip_limited_calls", "SIP calls refused at a limit of their trunk", ["limit"]
        )
        self.bans = counter("switchboard_sip_bans", "Addresses that the gateway began to ignore")
        self.ignored = gauge("switchboard_sip_ignored_addresses", "Addresses that the gateway ignores now")
        for limit in ("max_calls", "calls_per_second"):
            self.limited.labels(limit)

    def count(self, direction: str, end: CallEnd) -> None:
        """Count a call that ended."""
        self._calls.labels(direction, end.outcome).inc()
