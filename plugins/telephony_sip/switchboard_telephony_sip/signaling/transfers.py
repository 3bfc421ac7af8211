"""REFER, its notifications, and Replaces (RFC 3515, 3891, and 6665)."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from aiosipua.message import SipRequest

from switchboard_telephony_sip.signaling.dialog_state import DialogKey
from switchboard_telephony_sip.signaling.messages import read_uri_text

SIPFRAG = "message/sipfrag"
STATUS_LINE = re.compile(r"SIP/2\.0[ \t]+(\d{3})\b")
REFER_EVENT = re.compile(r"refer[ \t]*(?:;.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReplacesHeader:
    """The dialog that a new call takes over, as its peer names it: `to_tag` is that of the receiver."""

    call_id: str
    to_tag: str
    from_tag: str
    is_early_only: bool = False

    @property
    def key(self) -> DialogKey:
        return self.call_id, self.to_tag, self.from_tag

    def __str__(self) -> str:
        early = ";early-only" if self.is_early_only else ""
        return f"{self.call_id};to-tag={self.to_tag};from-tag={self.from_tag}{early}"


def read_replaces(value: str) -> ReplacesHeader | None:
    """Parse a Replaces header; None if a tag is missing or the Call-ID is empty."""
    call_id, *parameters = (part.strip() for part in value.split(";"))
    named = dict(_split_parameter(parameter) for parameter in parameters)
    if not call_id or not named.get("to-tag") or not named.get("from-tag"):
        return None
    return ReplacesHeader(call_id, named["to-tag"], named["from-tag"], "early-only" in named)


def _split_parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip()


def build_refer_to(target: str, replaces: ReplacesHeader | None) -> str:
    """Return the value of Refer-To, for an attended transfer with the dialog to replace (RFC 3891, section 2)."""
    return f"<{target}?Replaces={quote(str(replaces), safe='')}>" if replaces else f"<{target}>"


def read_refer_to(request: SipRequest) -> tuple[str, ReplacesHeader | None] | None:
    """Return target URI and dialog to replace of a REFER, or None if it names no SIP or telephone URI."""
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


def is_refer_event(request: SipRequest) -> bool:
    return REFER_EVENT.fullmatch((request.headers.get_first("event") or "").strip()) is not None


def read_event_id(request: SipRequest) -> str:
    """Return the `id` of the Event header, which is the CSeq number of the REFER, or an empty string."""
    found = re.search(r";\s*id\s*=\s*(\d+)", request.headers.get_first("event") or "")
    return found[1] if found else ""


def is_subscription_over(request: SipRequest) -> bool:
    state = (request.headers.get_first("subscription-state") or "").strip().lower()
    return state.startswith("terminated")
