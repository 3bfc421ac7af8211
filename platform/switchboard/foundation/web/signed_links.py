"""Links that need no credential for a quarter of an hour, to a row of an organization."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from itsdangerous import BadSignature, URLSafeSerializer

from switchboard.foundation.database import now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.errors import NotFound

LINK_LIFETIME: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SignedLinks:
    """Signs and reads the tokens of links. A token is valid for one purpose only."""

    keyring: KeyRing
    purpose: str

    def sign(self, organization_id: UUID, row_id: UUID) -> tuple[str, datetime]:
        """Return a token, and the time from which it is refused."""
        expires_at = now().replace(microsecond=0) + LINK_LIFETIME
        token = self._serializer.dumps([organization_id.hex, row_id.hex, int(expires_at.timestamp())])
        return str(token), expires_at

    def read(self, token: str) -> tuple[UUID, UUID]:
        """Return the organization and the row of a token. Raises `NotFound` if it is not ours, or has expired."""
        try:
            organization_id, row_id, expires = self._serializer.loads(token)
            if now() < datetime.fromtimestamp(int(expires), UTC):
                return UUID(organization_id), UUID(row_id)
        except (BadSignature, ValueError, TypeError, AttributeError):
            pass
        raise NotFound("The link is not valid, or no longer valid.")

    @property
    def _serializer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.keyring.derive(self.purpose), salt=self.purpose)
