"""Digest authentication in both directions (RFC 3261, section 22, RFC 7616, and RFC 8760)."""

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiosipua.auth import SipDigestAuth, build_credentials
from aiosipua.headers import AuthChallenge, parse_auth, stringify_auth
from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.messages import BREAKS

NONCE_SECONDS = 300
MAX_USED_NONCES = 10_000
NONCE_COUNT = re.compile(r"[0-9A-Fa-f]{8}")
# Strongest first; build_credentials of aiosipua has both.
ALGORITHMS = ("SHA-256", "MD5")


@dataclass(frozen=True, slots=True)
class SipCredentials:
    """User name and password with which the gateway answers a trunk's challenge."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class DigestAccount:
    """Password of a user who may call in, and the trunk to which the user belongs."""

    password: str
    trunk: TrunkQuota


def answer_challenge(
    response: SipResponse, credentials: SipCredentials | None, request: SipRequest
) -> tuple[str, str] | None:
    """Return the header that answers a 401 or 407, or None for another response, or if no challenge can be answered."""
    if response.status_code not in (401, 407) or credentials is None:
        return None
    asks, answers = ("WWW-Authenticate", "Authorization")
    if response.status_code == 407:
        asks, answers = ("Proxy-Authenticate", "Proxy-Authorization")
    challenges = [_read_challenge(value) for value in response.headers.get(asks)]
    known = [challenge for challenge in challenges if _read_algorithm(challenge) in ALGORITHMS]
    account = SipDigestAuth(credentials.username, credentials.password)
    for challenge in sorted(known, key=lambda challenge: ALGORITHMS.index(_read_algorithm(challenge))):
        answer = build_credentials(account, challenge, request.method, request.uri)
        # A vendor's nonce is echoed into our header.
        if answer is not None and not BREAKS.search(value := stringify_auth(answer)):
            return answers, value
    return None


def is_stale(response: SipResponse) -> bool:
    """Return whether a challenge says that only the nonce was too old (RFC 7616, section 3.3)."""
    values = [*response.headers.get("WWW-Authenticate"), *response.headers.get("Proxy-Authenticate")]
    return any(_read_challenge(value).params.get("stale", "").lower() == "true" for value in values)


def _read_challenge(value: str) -> AuthChallenge:
    challenge = parse_auth(value)
    return AuthChallenge(challenge.scheme, {name.lower(): text for name, text in challenge.params.items()})


def _read_algorithm(challenge: AuthChallenge) -> str:
    return challenge.params.get("algorithm", "MD5").upper()


class DigestVerifier:
    """Challenges to callers, and checks of their answers.

    A challenge is signed and not stored, so unauthenticated requests take no memory. The nonce is valid for five
    minutes and for the address that got it. A nonce's count must grow, so that a recorded request is not accepted
    again.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._counts: OrderedDict[str, int] = OrderedDict()

    def build_challenge(self, realm: str, host: str, *, stale: bool = False) -> str:
        """Return the value of WWW-Authenticate. The algorithm is MD5, because many telephone systems have no other."""
        nonce = self._build_nonce(int(time.time()), host, secrets.token_hex(4))
        parameters = {"realm": realm, "nonce": nonce, "qop": "auth"}
        if stale:
            parameters["stale"] = "true"
        return stringify_auth(AuthChallenge("Digest", {**parameters, "algorithm": "MD5"}))

    def _build_nonce(self, issued: int, host: str, salt: str) -> str:
        # Calls of the same second need nonces of their own, because each may be used once with the same count.
        signature = hmac.new(self._secret, f"{issued} {salt} {host}".encode(), hashlib.sha256).hexdigest()
        return f"{issued:x}-{salt}-{signature[:32]}"

    def is_fresh(self, nonce: str, host: str) -> bool:
        issued, _, rest = nonce.partition("-")
        try:
            seconds = int(issued, 16)
        except ValueError:
            return False
        expected = self._build_nonce(seconds, host, rest.partition("-")[0])
        genuine = hmac.compare_digest(expected.encode(), nonce.encode())
        return genuine and 0 <= time.time() - seconds <= NONCE_SECONDS

    def verify(
        self, request: SipRequest, realm: str, accounts: Mapping[str, Sequence[DigestAccount]], host: str
    ) -> list[DigestAccount]:
        """Return the accounts of the user whose password the request proves, none for a wrong one.

        All accounts of that name are tried, so that the time does not say which one has the password.
        """
        value = request.headers.get_first("Authorization")
        if value is None or len(value) > 4096:
            return []
        given = _read_credentials(value)
        nonce, count = given.get("nonce", ""), given.get("nc", "")
        if given.get("realm") != realm or given.get("uri") != request.uri:
            return []
        if given.get("qop") != "auth" or not given.get("cnonce") or not self.is_fresh(nonce, host):
            return []
        if not NONCE_COUNT.fullmatch(count) or int(count, 16) <= self._counts.get(nonce, 0):
            return []
        named = accounts.get(given.get("username", ""), ())
        proven = [account for account in named if _is_proven(account, request, given)]
        if proven:
            self._counts[nonce] = int(count, 16)
            self._counts.move_to_end(nonce)
            if len(self._counts) > MAX_USED_NONCES:
                self._counts.popitem(last=False)
        return proven

    def was_stale(self, request: SipRequest, host: str) -> bool:
        """Return whether the request answers a challenge that is too old or was for another address."""
        value = request.headers.get_first("Authorization")
        return value is not None and not self.is_fresh(_read_credentials(value).get("nonce", ""), host)


def _read_credentials(value: str) -> dict[str, str]:
    return {name.lower(): text for name, text in parse_auth(value, credentials=True).params.items()}


def _is_proven(account: DigestAccount, request: SipRequest, given: Mapping[str, str]) -> bool:
    """Return whether the digest of credentials was made with an account's password."""
    expected = build_credentials(
        SipDigestAuth(given["username"], account.password),
        AuthChallenge("Digest", {"realm": given["realm"], "nonce": given["nonce"], "qop": "auth"}),
        request.method,
        request.uri,
        nonce_count=int(given["nc"], 16),
        cnonce=given["cnonce"],
    )
    response = given.get("response", "").lower().encode()
    return expected is not None and hmac.compare_digest(expected.params["response"].encode(), response)
