"""Session timers (RFC 4028): a session that nobody refreshes is ended."""

from dataclasses import dataclass

from aiosipua.message import SipMessage, SipRequest
from aiosipua.session_timer import parse_session_expires

from switchboard_telephony_sip.signaling.messages import list_options

MIN_SESSION_SECONDS = 90
DEFAULT_SESSION_SECONDS = 1800


class SessionTooShort(Exception):
    """A peer asks for an interval below 90 seconds (422)."""


@dataclass(frozen=True, slots=True)
class SessionInterval:
    """Interval in seconds, and the side that refreshes the session."""

    seconds: int
    is_ours: bool

    def format_header(self, *, is_caller: bool) -> str:
        """Return the value of Session-Expires; `is_caller` says on which side of the transaction this gateway is."""
        return f"{self.seconds};refresher={'uac' if self.is_ours == is_caller else 'uas'}"


def request_session(seconds: int, minimum: int = MIN_SESSION_SECONDS) -> list[tuple[str, str]]:
    """Return the headers that propose an interval, without a refresher, which the peer chooses."""
    return [("Session-Expires", str(max(seconds, minimum))), ("Min-SE", str(minimum))]


def accept_session(request: SipRequest) -> SessionInterval | None:
    """Return the interval for a request of the peer, None without one; raises `SessionTooShort`.

    The peer refreshes, unless it asks that the gateway does.
    """
    value = request.headers.get_first("session-expires")
    supports_timer = "timer" in list_options(request, "supported")
    if value is None:
        return SessionInterval(DEFAULT_SESSION_SECONDS, is_ours=False) if supports_timer else None
    seconds, refresher = parse_session_expires(value)
    if seconds < MIN_SESSION_SECONDS:
        raise SessionTooShort
    is_ours = refresher == "uas" or (refresher is None and not supports_timer)
    return SessionInterval(seconds, is_ours=is_ours)


def read_session(response: SipMessage) -> SessionInterval | None:
    """Return the interval that the peer has accepted in a 2xx response to our request."""
    value = response.headers.get_first("session-expires")
    if value is None:
        return None
    seconds, refresher = parse_session_expires(value)
    return SessionInterval(max(seconds, MIN_SESSION_SECONDS), is_ours=refresher != "uas")
