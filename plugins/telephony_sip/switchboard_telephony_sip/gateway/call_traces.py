"""SIP messages of the gateway's calls, in memory: those of live calls, and of calls that ended lately."""

import re
import time
from collections import OrderedDict, deque
from collections.abc import Container
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Final

from aiosipua.utils import format_addr

from switchboard_telephony_sip.commands import TraceEntry, TraceResult
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.dialing import CallInviter
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.endpoint import TracedMessage
from switchboard_telephony_sip.signaling.outgoing import OutgoingInvite

FIRST_MESSAGES: Final = 50
LAST_MESSAGES: Final = 50
"""Messages that are kept of a call: its beginning, which has the negotiation, and the latest ones."""
MESSAGE_BYTES: Final = 4096
KEEP_SECONDS: Final = 1800.0
KEEP_BYTES: Final = 16 * 1024 * 1024
"""Limits of the calls that have ended; the oldest make way."""
MAX_UNDECIDED: Final = 200
"""Calls that came in and belong to no trunk yet, scanners' among them."""

MASK: Final = "***"
_SECRETS: Final = (
    # Digest: the response proves the password, and can be attacked offline.
    (re.compile(r'(\b(?:response|rspauth)\s*=\s*"?)[^",\r\n]*', re.IGNORECASE), rf"\1{MASK}"),
    (
        re.compile(r"^((?:Proxy-)?Authorization\s*:\s*(?:Basic|Bearer)\s+).*$", re.IGNORECASE | re.MULTILINE),
        rf"\1{MASK}",
    ),
    (re.compile(r"(\bsips?:[^\s:@;<>]+):[^\s@<>]+@", re.IGNORECASE), rf"\1:{MASK}@"),
    # SDP: SRTP keys (RFC 4568), keys of RFC 4566 and of MIKEY (RFC 4567), and the password of ICE.
    (re.compile(r"(\binline:)[^\s|;]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"^(k=[a-z0-9]+:|a=key-mgmt:|a=ice-pwd:).*$", re.IGNORECASE | re.MULTILINE), rf"\1{MASK}"),
    # Pressed keys, which may be a PIN, in the bodies of INFO.
    (re.compile(r"^(Signal\s*=\s*).*$", re.IGNORECASE | re.MULTILINE), rf"\1{MASK}"),
)
_INTERNATIONAL: Final = re.compile(r"((?:\+|%2[Bb])\d{4})\d+(\d{4})(?!\d)")
"""As the platform's logs mask numbers."""
_NATIONAL: Final = re.compile(r"(?<![\w.+=-])(\d{3})\d+(\d{3})(?![\w.])")
_NUMBERED: Final = re.compile(
    r"^(?:[A-Z]+ \S+ SIP/2\.0|(?:From|f|To|t|Contact|m|P-Asserted-Identity|P-Preferred-Identity|Remote-Party-ID"
    r"|Refer-To|r|Referred-By|b|Diversion|History-Info|P-Called-Party-ID)\s*:).*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines that name the parties."""
_KEYS: Final = re.compile(r"^(Content-Type\s*:\s*application/dtmf\s*(?:;.*)?$.*?^\s*$\s*)\S.*", re.I | re.M | re.S)


@dataclass(slots=True)
class CallMessages:
    """Messages of a call of an account, which may have several SIP Call-IDs: one per attempt and party.

    `touched_at` is the time of the last message, or of the beginning.
    """

    account_key: str = ""
    sip_ids: list[str] = field(default_factory=list)
    first: list[TracedMessage] = field(default_factory=list)
    last: deque[TracedMessage] = field(default_factory=lambda: deque(maxlen=LAST_MESSAGES))
    omitted: int = 0
    bytes: int = 0
    touched_at: float = 0.0

    def add(self, message: TracedMessage) -> None:
        """Add a message; the oldest one that is not among the first makes way."""
        self.touched_at = message.at
        self.bytes += len(message.data)
        if len(self.first) < FIRST_MESSAGES:
            self.first.append(message)
            return
        if len(self.last) == LAST_MESSAGES:
            self.omitted += 1
            self.bytes -= len(self.last[0].data)
        self.last.append(message)

    @property
    def messages(self) -> list[TracedMessage]:
        return [*self.first, *self.last]


class CallTraces:
    """Traces of calls by the gateway's ids. Calls in `live` are kept in any case."""

    def __init__(self, live: Container[str], *, keep_bytes: int = KEEP_BYTES) -> None:
        self._live = live
        self._keep_bytes = keep_bytes
        self._calls: OrderedDict[str, CallMessages] = OrderedDict()
        self._owners: dict[str, CallMessages] = {}
        self._undecided: OrderedDict[str, CallMessages] = OrderedDict()

    def record(self, message: TracedMessage) -> None:
        """Take a message from the wire. Those that belong to no call are dropped."""
        found = self._owners.get(message.call_id) or self._undecided.get(message.call_id)
        if found is None:
            if message.direction == "out" or not message.data.startswith(b"INVITE "):
                return
            found = self._undecided[message.call_id] = CallMessages()
            if len(self._undecided) > MAX_UNDECIDED:
                self._undecided.popitem(last=False)
        found.add(replace(message, data=message.data[:MESSAGE_BYTES]))

    def link(self, call: GatewayCall, sip_id: str) -> None:
        """Count the messages with this SIP Call-ID among those of a call."""
        messages = self._calls.get(call.call_id)
        if messages is None:
            messages = self._calls[call.call_id] = CallMessages(call.account_key, touched_at=time.time())
        messages.sip_ids.append(sip_id)
        self._owners[sip_id] = messages
        if (earlier := self._undecided.pop(sip_id, None)) is not None:
            for message in earlier.messages:
                messages.add(message)
        self._drop_old()

    def find(self, account_key: str, call_id: str) -> TraceResult | None:
        """Return the masked messages of a call; None for one of another account, and one that is not kept."""
        self._drop_old()
        found = self._calls.get(call_id)
        if found is None or found.account_key != account_key:
            return None
        return TraceResult([_describe(message) for message in found.messages], found.omitted)

    def _drop_old(self) -> None:
        oldest, total = time.time() - KEEP_SECONDS, 0
        for call_id, messages in reversed(list(self._calls.items())):
            if call_id in self._live:
                continue
            total += messages.bytes
            if messages.touched_at < oldest or total > self._keep_bytes:
                del self._calls[call_id]
                for sip_id in messages.sip_ids:
                    self._owners.pop(sip_id, None)


@dataclass(frozen=True, slots=True)
class TracedInviter:
    """An inviter whose calls are parts of a call of the gateway."""

    traces: CallTraces
    call: GatewayCall
    inviter: CallInviter

    async def invite(self, invite: OutgoingInvite) -> Dialog:
        attempt = replace(invite, call_id=token_hex(16))
        self.traces.link(self.call, attempt.call_id)
        return await self.inviter.invite(attempt)


def _describe(message: TracedMessage) -> TraceEntry:
    peer = message.peer
    text = mask_message(message.data.decode("utf-8", "replace"))
    words = text.partition("\r\n")[0].split(" ", 1)
    summary = words[1] if words[0].startswith("SIP/") and len(words) == 2 else words[0]
    remote = format_addr(peer.host, peer.port)
    return TraceEntry(message.at, message.direction, message.local, remote, peer.transport, summary, text)


def mask_message(text: str) -> str:
    """Return a SIP message with its secrets, pressed keys, and phone numbers masked, as in `+1555***4567`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    text = _KEYS.sub(rf"\1{MASK}", text)
    text = _NUMBERED.sub(lambda line: _NATIONAL.sub(rf"\1{MASK}\2", line[0]), text)
    return _INTERNATIONAL.sub(rf"\1{MASK}\2", text)
