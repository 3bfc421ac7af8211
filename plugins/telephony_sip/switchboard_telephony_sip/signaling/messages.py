"""Strict reading and plain building of SIP messages, with the message model and the header codecs of aiosipua.

aiosipua reads leniently. RFC 4475 names messages that an element must refuse, so the rules of RFC 3261 on which
transactions and dialogs depend are checked here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from aiosipua.headers import Address, Via, parse_address, parse_uri, parse_via
from aiosipua.message import SipMessage, SipRequest, SipResponse
from aiosipua.session_timer import parse_session_expires

MAX_MESSAGE_BYTES = 64 * 1024
MAX_CSEQ = 2**31 - 1
SDP = "application/sdp"
ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, MESSAGE, REFER, NOTIFY"
SUPPORTED = "timer, replaces"
USER_AGENT = "Switchboard"
SIP_VERSION = "SIP/2.0"
# Headers whose values are written into later requests of a dialog.
ECHOED = ("via", "from", "to", "call-id", "cseq", "contact", "record-route")
ONCE = ("from", "to", "call-id", "cseq")
AT_MOST_ONCE = ("content-length", "max-forwards", "content-type", "replaces", "refer-to", "session-expires", "expires")
# Compact forms of headers that aiosipua does not expand (RFC 3515, 4028, 3892, 6665).
COMPACT = {"r": "Refer-To", "x": "Session-Expires", "b": "Referred-By", "o": "Event", "u": "Allow-Events"}
METHOD = re.compile(r"[A-Za-z0-9.!%*_+`'~-]+")
USER_PARAMETERS = re.compile(r"(sips?:[^@;>\s]*);[^@>\s]*@", re.IGNORECASE)
QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*')
# Characters with which a value would begin another header or end a start line.
BREAKS = re.compile(r"[\x00-\x1f\x7f]")
MIN_SESSION_SECONDS = 90
DEFAULT_SESSION_SECONDS = 1800
SIPFRAG = "message/sipfrag"
STATUS_LINE = re.compile(r"SIP/2\.0[ \t]+(\d{3})\b")
REASONS = {
    100: "Trying", 180: "Ringing", 183: "Session Progress", 200: "OK", 202: "Accepted", 302: "Moved Temporarily",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 415: "Unsupported Media Type",
    416: "Unsupported URI Scheme", 420: "Bad Extension", 422: "Session Interval Too Small",
    480: "Temporarily Unavailable", 481: "Call/Transaction Does Not Exist", 482: "Loop Detected", 483: "Too Many Hops",
    486: "Busy Here", 487: "Request Terminated", 488: "Not Acceptable Here", 489: "Bad Event", 491: "Request Pending",
    500: "Server Internal Error", 501: "Not Implemented", 503: "Service Unavailable", 505: "Version Not Supported",
    603: "Decline",
}  # fmt: skip


class MalformedMessage(Exception):
    """A message that breaks RFC 3261. `request` is given if a response with `status` can be routed back."""

    def __init__(self, reason: str, status: int = 400, request: SipRequest | None = None) -> None:
        super().__init__(reason)
        self.reason, self.status, self.request = reason, status, request


def parse_sip_message(data: bytes) -> SipRequest | SipResponse:
    """Parse and check one message; raises `MalformedMessage`."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise MalformedMessage("the message is too long", 513)
    try:
        message = SipMessage.parse(data)
    except ValueError as error:
        raise MalformedMessage(str(error)) from error
    for short, name in COMPACT.items():
        if values := message.headers.get(short):
            message.headers.remove(short)
            for value in values:
                message.headers.append(name, value)
    start_line = data.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    if isinstance(message, SipResponse):
        _check_headers(message)
        if not 100 <= message.status_code <= 699 or not start_line.startswith(f"{SIP_VERSION} "):
            raise MalformedMessage("the status line is not one of SIP/2.0")
        return message
    try:
        _check_headers(message)
        _check_request(message, start_line)
    except MalformedMessage as error:
        is_answerable = message.method != "ACK" and all(message.headers.get(name) for name in ("via", *ONCE))
        raise MalformedMessage(error.reason, error.status, message if is_answerable else None) from error
    return message


def _check_headers(message: SipRequest | SipResponse) -> None:
    headers = message.headers
    for name in ONCE:
        if len(headers.get(name)) != 1 or not headers.get(name)[0]:
            raise MalformedMessage(f"the message needs one {name} header")
    for name in AT_MOST_ONCE:
        if len(headers.get(name)) > 1:
            raise MalformedMessage(f"the message has several {name} headers")
    _check_echoed_headers(message)
    number, method = read_cseq(message)
    if isinstance(message, SipRequest) and method != message.method:
        raise MalformedMessage("the method differs from that of CSeq")
    if not 0 <= number <= MAX_CSEQ:
        raise MalformedMessage("the CSeq number is not 31 bits long")
    via = read_via(message)
    if not via.host or not via.protocol.upper().startswith("SIP/"):
        raise MalformedMessage("the topmost Via is unreadable")
    for name in ("from", "to"):
        value = headers.get(name)[0]
        if not read_address(value).uri.host or (value.startswith('"') and not QUOTED.match(value)):
            raise MalformedMessage(f"the {name} header has no address")


def _check_echoed_headers(message: SipRequest | SipResponse) -> None:
    headers = message.headers
    for name in ECHOED:
        values = [value.replace("\t", " ") for value in headers.get(name)]
        if any(BREAKS.search(value) for value in values):
            raise MalformedMessage(f"the {name} header has control characters")
        headers.get(name)[:] = values
    if not all(is_sip_uri(read_uri_text(value)) for value in headers.get("record-route")):
        raise MalformedMessage("Record-Route is not a SIP URI")


def _check_request(request: SipRequest, start_line: str) -> None:
    words = start_line.split(" ")
    if len(words) != 3 or not METHOD.fullmatch(words[0]) or BREAKS.search(start_line):
        raise MalformedMessage("the request line has not three words")
    if words[2].upper() != SIP_VERSION:
        raise MalformedMessage("the version is not SIP/2.0", 505)
    length = request.headers.get_first("content-length")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise MalformedMessage("Content-Length is not a number")
    if length is not None and len(request.body) < int(length[:9]):
        raise MalformedMessage("the body is shorter than Content-Length")
    hops = request.headers.get_first("max-forwards")
    if hops is not None and not (hops.isascii() and hops.isdigit() and int(hops[:9]) <= 255):
        raise MalformedMessage("Max-Forwards is not a number up to 255")
    scheme = words[1].partition(":")[0].lower()
    if words[1].startswith("<"):
        raise MalformedMessage("the Request-URI is in brackets")
    if scheme not in ("sip", "sips", "tel"):
        raise MalformedMessage("the scheme of the Request-URI is unknown", 416)
    if scheme != "tel" and (not parse_uri(words[1]).host or "?" in words[1]):
        raise MalformedMessage("the Request-URI has no host, or has headers")


def read_cseq(message: SipMessage) -> tuple[int, str]:
    """Return number and method of CSeq; raises `MalformedMessage`."""
    words = (message.headers.get_first("cseq") or "").split()
    if len(words) != 2 or not (words[0].isascii() and words[0].isdigit() and len(words[0]) <= 20):
        raise MalformedMessage("CSeq is not a number and a method")
    return int(words[0]), words[1]


def read_via(message: SipMessage) -> Via:
    """Return the topmost Via. RFC 3261 allows spaces around the slashes, which aiosipua does not."""
    values = message.headers.get("via")
    via = parse_via(re.sub(r"\s*/\s*", "/", values[0], count=2)) if values else Via()
    via.host = via.host.strip().strip("[]")
    return via


def read_address(value: str) -> Address:
    """Parse a From, To, Contact, Refer-To, or identity value; a quoted display name may contain angle brackets.

    Parameters of a telephone number before the `@` are left out (RFC 3261, section 19.1.6).
    """
    address = parse_address(USER_PARAMETERS.sub(r"\1@", _skip_display_name(value), count=1))
    address.uri.host = address.uri.host.strip()
    return address


def read_uri_text(value: str) -> str:
    """Return the URI of an address as the peer wrote it."""
    rest = _skip_display_name(value)
    _, bracket, inside = rest.partition("<")
    return inside.partition(">")[0].strip() if bracket else rest.partition(";")[0].strip()


def _skip_display_name(value: str) -> str:
    quoted = QUOTED.match(value)
    return value[quoted.end() :] if quoted else value


def is_sip_uri(text: str) -> bool:
    """Return whether a URI may be the target of a request."""
    return text.lower().startswith(("sip:", "sips:")) and " " not in text and not BREAKS.search(text)


def read_tag(value: str | None) -> str:
    """Return the tag of a From or To header, or an empty string."""
    return (read_address(value).tag or "") if value else ""


def list_options(message: SipMessage, name: str) -> set[str]:
    """Return the tokens of a header such as Supported, Require, or Allow, in lower case."""
    return {word.strip().lower() for value in message.headers.get(name) for word in value.split(",") if word.strip()}


def build_request(method: str, uri: str, headers: Iterable[tuple[str, str]], body: str = "") -> SipRequest:
    """Build a request; raises `ValueError` for a URI or header value with control characters."""
    if BREAKS.search(uri) or " " in uri or not uri:
        raise ValueError(f"{uri!r} is not a URI")
    request = SipRequest(method=method, uri=uri, body=body.encode())
    for name, value in headers:
        if BREAKS.search(name + value):
            raise ValueError(f"the header {name!r} has control characters")
        request.headers.append(name, value)
    return request


def build_response(
    request: SipRequest, status: int, *, tag: str = "", headers: Iterable[tuple[str, str]] = (), sdp: str = ""
) -> SipResponse:
    """Build a response with the headers that RFC 3261, section 8.2.6, copies; `tag` goes to To if it has none."""
    response = SipResponse(status_code=status, reason_phrase=REASONS.get(status, "Unknown"))
    for name in ("Via", "From", "To", "Call-ID", "CSeq"):
        for value in request.headers.get(name):
            response.headers.append(name, value)
    if tag and not read_tag(request.headers.get_first("to")):
        response.headers.set_single("To", f"{request.headers.get_first('to')};tag={tag}")
    if 100 < status < 300 and request.method == "INVITE":
        for value in request.headers.get("record-route"):
            response.headers.append("Record-Route", value)
    for name, value in headers:
        response.headers.append(name, BREAKS.sub(" ", value))
    if sdp:
        response.headers.append("Content-Type", SDP)
        response.text = sdp
    return response


def read_sdp(message: SipMessage) -> str | None:
    """Return the SDP of a message, also as the first part of a multipart body, or None."""
    kind = (message.headers.get_first("content-type") or "").partition(";")[0].strip().lower()
    if not message.body:
        return None
    if kind == SDP:
        return message.text
    if not kind.startswith("multipart/"):
        return None
    for part in message.text.split("\r\n--"):
        head, _, body = part.partition("\r\n\r\n")
        if SDP in head.lower() and body:
            return body if body.endswith("\r\n") else f"{body}\r\n"
    return None


class SessionTooShort(Exception):
    """A peer asks for an interval below 90 seconds (422)."""


@dataclass(frozen=True, slots=True)
class SessionInterval:
    """Interval of a session timer in seconds, and the side that refreshes the session (RFC 4028).

    A session that nobody refreshes is ended.
    """

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


@dataclass(frozen=True, slots=True)
class ReplacesHeader:
    """The dialog that a new call takes over (RFC 3891), as its peer names it: `to_tag` is that of the receiver."""

    call_id: str
    to_tag: str
    from_tag: str
    is_early_only: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return self.call_id, self.to_tag, self.from_tag

    def __str__(self) -> str:
        early = ";early-only" if self.is_early_only else ""
        return f"{self.call_id};to-tag={self.to_tag};from-tag={self.from_tag}{early}"


def read_replaces(value: str) -> ReplacesHeader | None:
    """Parse a Replaces header; None if a tag is missing or the Call-ID is empty."""
    call_id, *parameters = (part.strip() for part in value.split(";"))
    parts = (parameter.partition("=") for parameter in parameters)
    named = {name.strip().lower(): value.strip() for name, _, value in parts}
    if not call_id or not named.get("to-tag") or not named.get("from-tag"):
        return None
    return ReplacesHeader(call_id, named["to-tag"], named["from-tag"], "early-only" in named)


def read_refer_to(request: SipRequest) -> tuple[str, ReplacesHeader | None] | None:
    """Return target URI and dialog to replace of a REFER (RFC 3515), or None if it names no SIP or telephone URI."""
    values = request.headers.get("refer-to")
    target, _, headers = read_uri_text(values[0]).partition("?") if len(values) == 1 else ("", "", "")
    if not target.lower().startswith(("sip:", "sips:", "tel:")):
        return None
    for header in headers.split("&"):
        name, _, value = header.partition("=")
        if name.lower() == "replaces":
            return target, read_replaces(unquote(value))
    return target, None


def read_notified_status(request: SipRequest) -> int | None:
    """Return the status of a NOTIFY about a REFER, or None if it has none."""
    found = STATUS_LINE.match(request.text.lstrip())
    return int(found[1]) if found else None
