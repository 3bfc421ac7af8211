"""Tokens with which a visitor's browser goes on with a conversation."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from itsdangerous import BadSignature, URLSafeSerializer

from switchboard.foundation.keyring import KeyRing

PURPOSE: Final = "widget session"


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """Signs and reads the tokens. Each names one widget and one conversation with it."""

    keyring: KeyRing

    def sign(self, widget_id: UUID, session_id: UUID) -> str:
        """Return the token of a conversation."""
        return str(self._serializer.dumps([widget_id.hex, session_id.hex]))

    def read(self, widget_id: UUID, token: str) -> UUID | None:
        """Return the conversation of a token; None if the token is not ours, or another widget's."""
        try:
            widget, held = self._serializer.loads(token)
            return UUID(held) if UUID(widget) == widget_id else None
        except (BadSignature, ValueError, TypeError, AttributeError):
            return None

    @property
    def _serializer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.keyring.derive(PURPOSE), salt=PURPOSE)
