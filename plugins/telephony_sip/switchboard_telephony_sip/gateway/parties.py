"""Caller, callee, and metadata of a call that a trunk brings."""

from collections.abc import Mapping

from aiosipua.message import SipRequest

from switchboard_telephony_sip.callbacks import IncomingNotice
from switchboard_telephony_sip.gateway.directory import TrunkLine
from switchboard_telephony_sip.gateway.phone_numbers import normalize_number, read_caller
from switchboard_telephony_sip.headers import read_metadata
from switchboard_telephony_sip.signaling.messages import read_address


def describe_invite(line: TrunkLine, call_id: str, request: SipRequest) -> IncomingNotice:
    """Return the notice of an INVITE to the platform."""
    caller, callee = read_parties(line, request)
    headers: Mapping[str, str] = {name: values[0] for name, values in request.headers.items()}
    return IncomingNotice(call_id, caller, callee, read_metadata(headers))


def read_parties(line: TrunkLine, request: SipRequest) -> tuple[str, str]:
    """Return caller and callee. A registered trunk calls the user of the registration, and names the number in To."""
    country = line.trunk.country
    asserted = request.headers.get("P-Asserted-Identity")
    caller = read_address(asserted[0] if asserted else request.headers.get("From")[0])
    called = read_address(request.uri).uri.user or ""
    if line.trunk.registers and called == line.trunk.username:
        called = read_address(request.headers.get("To")[0]).uri.user or called
    return read_caller(caller, country), normalize_number(called, country)
