"""Log lines and metrics of what is refused before it is a call: scanners, and calls beyond a trunk's limits."""

import structlog

from switchboard_telephony_sip.gateway.gateway_metrics import GatewayMetrics
from switchboard_telephony_sip.signaling import SipUserAgent, TrunkBusy

logger = structlog.get_logger()


def report_refusals(agent: SipUserAgent, metrics: GatewayMetrics) -> None:
    """Log and count the refusals of a user agent from now on."""

    def report_ban(address: str, seconds: float) -> None:
        metrics.bans.inc()
        logger.warning("SIP address is ignored after refused messages", address=address, seconds=seconds)

    def report_limit(refusal: TrunkBusy) -> None:
        metrics.limited.labels(refusal.limit).inc()
        trunk = refusal.quota.name.rpartition("/")[2]
        logger.warning("SIP call refused at a limit of its trunk", trunk=trunk, limit=refusal.limit)

    agent.guard.on_ignored = report_ban
    agent.quotas.on_busy = report_limit
    metrics.ignored.set_function(lambda: len(agent.guard.list_ignored()))
