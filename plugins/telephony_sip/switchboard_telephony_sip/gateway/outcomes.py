"""Ends of calls: SIP statuses to the platform's outcomes, with the reason in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from switchboard.plugin_sdk import INVALID_NUMBER, describe_sip_failure
from switchboard.plugin_sdk.telephony_events import CallOutcome

_OUTCOMES: Final[Mapping[int, CallOutcome]] = {
    408: "no-answer",
    480: "no-answer",
    486: "busy",
    487: "canceled",
    600: "busy",
    603: "busy",
}
_NO_SUCH_NUMBER: Final = frozenset((404, 410, 484, 604))
FAILOVER_STATUSES: Final = frozenset((500, 502, 503, 504))
"""Statuses with which the next host or trunk is tried, if nobody's telephone rang yet."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """End of a call. `status` is the SIP status for another party that waits for this one."""

    outcome: CallOutcome
    message: str | None = None
    code: str | None = None
    status: int = 480


def describe_refusal(status: int) -> CallEnd:
    """Return the end of a call that was refused with a SIP status."""
    outcome = _OUTCOMES.get(status, "failed")
    code = INVALID_NUMBER if status in _NO_SUCH_NUMBER else str(status)
    return CallEnd(outcome, f"{describe_sip_failure(str(status))} (SIP {status})", code, status)


COMPLETED: Final = CallEnd("completed")
CANCELED: Final = CallEnd("canceled", status=487)
NOT_ANSWERED: Final = CallEnd("no-answer", status=480)
