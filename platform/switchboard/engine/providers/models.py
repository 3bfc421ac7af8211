"""Configured providers of organizations."""

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, json_column, now


class ProviderConfiguration(TenantTable, table=True):
    """One provider of one capability.

    `position` is its place in the order of failover. `secrets` is a JSON object encrypted by the key ring.
    """

    __tablename__ = "provider_configuration"
    __table_args__ = (UniqueConstraint("organization_id", "capability", "name"),)

    capability: str
    name: str
    position: int
    settings: dict[str, Any] = json_column()
    secrets: str
    updated_at: datetime = Field(default_factory=now)
