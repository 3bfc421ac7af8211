"""Signed tokens, and links to rows of an organization that need no credential for a quarter of an hour."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from itsdangerous import BadSignature, URLSafeTimedSerializer

from switchboard.foundation.database import now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.errors import NotFound

LINK_LIFETIME: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SignedTokens:
    """Signs and reads tokens. A token is valid for one purpose only, and for so many `seconds`; None: for good."""

    keyring: KeyRing
    purpose: str
    seconds: int | None = None

    def sign(self, *parts: str | int) -> str:
        """Return a token for these parts."""
        return str(self._serializer.dumps(parts))

    def read(self, token: str) -> list[Any] | None:
        """Return the parts of a token, or None if it is not ours, or has expired."""
        try:
            parts: list[Any] = self._serializer.loads(token, max_age=self.seconds)
        except (BadSignature, ValueError):
            return None
        return parts

    def sign_link(self, organization_id: UUID, row_id: UUID) -> tuple[str, datetime]:
        """Return a token for a link to a row, and the time from which it is refused."""
        expires_at = now().replace(microsecond=0) + LINK_LIFETIME
        return self.sign(organization_id.hex, row_id.hex, int(expires_at.timestamp())), expires_at

    def read_link(self, token: str) -> tuple[UUID, UUID]:
        """Return organization and row of a link's token. Raises `NotFound` if it is not ours, or has expired."""
        parts = self.read(token)
        if parts is None or datetime.fromtimestamp(parts[2], UTC) <= now():
            raise NotFound("The link is not valid, or no longer valid.")
        return UUID(parts[0]), UUID(parts[1])

    @property
    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self.keyring.derive(self.purpose), salt=self.purpose)
