"""Table of the integration's settings."""

from datetime import datetime

from sqlmodel import Field

from switchboard.foundation.database import TenantTable, encryption_label, now

PARTNER_API_KEY_LABEL = "integration|partner_api_key|{id}|{organization_id}"


class Integration(TenantTable, table=True):
    """An organization's integration, under the organization's id. `partner_api_key` is encrypted by the keyring; the
    webhook is an event target.
    """

    __tablename__ = "integration"

    partner_api_key: str | None = Field(default=None, sa_column_kwargs=encryption_label(PARTNER_API_KEY_LABEL))
    updated_at: datetime = Field(default_factory=now)
