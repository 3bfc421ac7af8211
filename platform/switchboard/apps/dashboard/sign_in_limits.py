"""Limits of password attempts, which reveal no account and lock nobody out (OWASP, slow down online guessing attacks
with device cookies).

Attempts of unknown browsers are counted for each e-mail address, whether it has an account or not. A browser that has
signed in as a user before holds a signed cookie; its attempts are counted apart, so that strangers who exhaust the
attempts of an address do not keep its owner out. `docs/decisions/0032-anonymous-requests.md`.
"""

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from itsdangerous import BadSignature, URLSafeTimedSerializer
from quart import Response, request

from switchboard.apps.dashboard.viewer import Cookie
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import RateLimited
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimitDecision, RateLimiter

PER_ADDRESS = Limit(per_second=0.1, burst=20)
PER_ACCOUNT = Limit(per_second=10 / 900, burst=10)
"""Ten attempts, then one every 90 seconds."""
PER_CODE = Limit(per_second=1 / 300, burst=5)
"""Three codes of a million are valid at any time, so somebody who knows the password needs two years for an even chance
of guessing one."""
COOKIE = Cookie("switchboard-browser", 365 * 24 * 3600, "/dashboard/sign-in")
PURPOSE = "known browser"
TOO_MANY_ATTEMPTS = LazyText("Too many attempts. Wait a moment, then try again.")


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """Counts attempts to sign in with a password."""

    settings: Settings
    keyring: KeyRing
    limiter: RateLimiter

    async def count_attempt(self, email: str) -> tuple[Limit, RateLimitDecision]:
        """Count an attempt before the password is looked at; return the limit that decides, and its decision."""
        by_address = await self.limiter.check_address("sign-in", request.remote_addr or "", PER_ADDRESS)
        if not by_address.allowed:
            return PER_ADDRESS, by_address
        return PER_ACCOUNT, await self.limiter.check("password", self._find_counted(email), PER_ACCOUNT)

    async def uncount_attempt(self, email: str) -> None:
        """Take a successful attempt out of the count: strangers would be refused one guess earlier for an address that
        somebody has just signed in with, which shows that it has an account.
        """
        await self.limiter.return_request("password", self._find_counted(email), PER_ACCOUNT)

    async def count_code(self, user_id: UUID) -> None:
        """Count a code of a user's second factor before it is looked at. Raises `RateLimited`."""
        if not (await self.limiter.check("second-factor", f"user:{user_id}", PER_CODE)).allowed:
            raise RateLimited(_("Too many codes. Wait five minutes, then try again."))

    async def uncount_code(self, user_id: UUID) -> None:
        """Take a right code out of the count."""
        await self.limiter.return_request("second-factor", f"user:{user_id}", PER_CODE)

    def remember_browser(self, response: Response, email: str) -> None:
        """Set the cookie of a browser that has signed in with this e-mail address."""
        content = {"account": digest_email(email), "browser": secrets.token_hex(8)}
        COOKIE.set(response, self._serializer.dumps(content), self.settings)

    def _find_counted(self, email: str) -> str:
        """Return what the attempts of this request's browser count against: itself, or the e-mail address."""
        account = digest_email(email)
        browser = self._find_browser(account)
        return f"browser:{browser}" if browser else f"account:{account}"

    def _find_browser(self, account: str) -> str | None:
        """Return the id of this browser if it has signed in to the account before."""
        try:
            content = self._serializer.loads(COOKIE.read(), max_age=COOKIE.seconds)
        except BadSignature:
            return None
        return str(content["browser"]) if content["account"] == account else None

    @property
    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self.keyring.derive(PURPOSE), salt=PURPOSE)


async def count_address(limiter: RateLimiter, purpose: str) -> None:
    """Count a request of a client address, before anything is done for it. Raises `RateLimited`."""
    if not (await limiter.check_address(purpose, request.remote_addr or "", PER_ADDRESS)).allowed:
        raise RateLimited(_(TOO_MANY_ATTEMPTS))


def digest_email(email: str) -> str:
    """Return what is counted for an e-mail address, in any letter case."""
    return hashlib.sha256(email.lower().encode(errors="replace")).hexdigest()
