"""Table of the integration's settings."""

from datetime import datetime

from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now


class Integration(TenantTable, table=True):
    """An organization's integration, under the organization's id. `partner_api_key` is encrypted by the keyring; the
    webhook is an event target.
    """

    __tablename__ = "integration"

    partner_api_key: str | None = None
    updated_at: datetime = Field(default_factory=now)
