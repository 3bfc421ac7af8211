"""Configured providers and extensions of organizations."""

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, encryption_label, json_column, now

SECRETS_LABEL = "provider_configuration|secrets|{id}|{organization_id}"


class ProviderConfiguration(TenantTable, table=True):
    """One provider of one capability, or one extension; `capability` is then its kind.

    `position` is its place in the order of failover; extensions have no order. `secrets` is a JSON object encrypted by
    the key ring.
    """

    __tablename__ = "provider_configuration"
    __table_args__ = (UniqueConstraint("organization_id", "capability", "name"),)

    capability: str
    name: str
    position: int
    settings: dict[str, Any] = json_column()
    secrets: str = Field(sa_column_kwargs=encryption_label(SECRETS_LABEL))
    updated_at: datetime = Field(default_factory=now)
