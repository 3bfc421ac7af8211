"""Encrypted media: SRTP (RFC 3711) with keys from the session description (RFC 4568)."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pylibsrtp

SUITES: Final[Mapping[str, int]] = {
    "AES_CM_128_HMAC_SHA1_80": pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_80,
    "AES_CM_128_HMAC_SHA1_32": pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_32,
}
KEY_BYTES: Final = 30
"""Bytes of the master key and its salt, in both suites."""
MOST_BYTES: Final = 1300
"""Bytes of a datagram that libsrtp's buffer takes."""

_CRYPTO: Final = re.compile(r"(\d{1,9})\s+(\S+)\s+inline:([A-Za-z0-9+/=]+)(\|[\d^]+)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CryptoLine:
    """`a=crypto` of a session description."""

    tag: int
    suite: str
    key: bytes

    def __str__(self) -> str:
        return f"{self.tag} {self.suite} inline:{b64encode(self.key).decode()}"


def parse_crypto_lines(values: Iterable[str]) -> list[CryptoLine]:
    """Return the lines that can be used. One with a master key identifier or session parameters cannot."""
    lines = []
    for value in values:
        match = _CRYPTO.fullmatch(value)
        if match is None or match.group(2) not in SUITES:
            continue
        try:
            key = b64decode(match.group(3), validate=True)
        except binascii.Error:
            continue
        if len(key) == KEY_BYTES:
            lines.append(CryptoLine(int(match.group(1)), match.group(2), key))
    return lines


@dataclass(frozen=True, slots=True)
class SrtpKeys:
    """Keys of the two directions."""

    suite: str
    local: bytes
    remote: bytes


class SrtpContext:
    """Encryption of one stream in each direction. A datagram that fails its check is None."""

    def __init__(self, keys: SrtpKeys) -> None:
        self.keys = keys
        self._out = _make_session(keys.suite, keys.local, pylibsrtp.Policy.SSRC_ANY_OUTBOUND)
        self._in = _make_session(keys.suite, keys.remote, pylibsrtp.Policy.SSRC_ANY_INBOUND)

    def change_keys(self, keys: SrtpKeys) -> None:
        """Adopt the keys of a later agreement; a direction whose key stays keeps its packet counter."""
        if (keys.suite, keys.local) != (self.keys.suite, self.keys.local):
            self._out = _make_session(keys.suite, keys.local, pylibsrtp.Policy.SSRC_ANY_OUTBOUND)
        if (keys.suite, keys.remote) != (self.keys.suite, self.keys.remote):
            self._in = _make_session(keys.suite, keys.remote, pylibsrtp.Policy.SSRC_ANY_INBOUND)
        self.keys = keys

    def protect(self, packet: bytes, *, is_control: bool) -> bytes:
        return self._out.protect_rtcp(packet) if is_control else self._out.protect(packet)

    def unprotect(self, packet: bytes, *, is_control: bool) -> bytes | None:
        if len(packet) > MOST_BYTES:
            return None
        try:
            return self._in.unprotect_rtcp(packet) if is_control else self._in.unprotect(packet)
        except pylibsrtp.Error:
            return None


def _make_session(suite: str, key: bytes, direction: int) -> pylibsrtp.Session:
    return pylibsrtp.Session(pylibsrtp.Policy(key=key, ssrc_type=direction, srtp_profile=SUITES[suite]))
