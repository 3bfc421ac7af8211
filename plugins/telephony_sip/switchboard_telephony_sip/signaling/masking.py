"""Masking of SIP messages for people: no secret, no pressed key, and no whole phone number is left in them."""

import re
from typing import Final

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


def mask_message(text: str) -> str:
    """Return a SIP message with its secrets, pressed keys, and phone numbers masked, as in `+1555***4567`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    text = _KEYS.sub(rf"\1{MASK}", text)
    text = _NUMBERED.sub(lambda line: _NATIONAL.sub(rf"\1{MASK}\2", line[0]), text)
    return _INTERNATIONAL.sub(rf"\1{MASK}\2", text)
