"""The integration's settings."""

from datetime import datetime

from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now


class Integration(TenantTable, table=True):
    """One an organization, under the organization's id. `partner_api_key` is the key ring's ciphertext; the webhook is an event target."""

    __tablename__ = "integration"

    partner_api_key: str | None = None
    updated_at: datetime = Field(default_factory=now)
