"""Configured providers and extensions of organizations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, encryption_label, json_column, now
from switchboard.plugin_sdk.registry import Capability

OWN_PROCESS: Final = "own"
SHARED_PROCESS: Final = "shared"
ProcessMode: TypeAlias = Literal["shared", "own"]
"""Where a provider runs: in the platform's process, or in one of its own."""
REMOTE_CAPABILITIES: Final = frozenset(
    {
        Capability.SPEECH_TO_TEXT,
        Capability.TEXT_TO_SPEECH,
        Capability.LLM,
        Capability.EMBEDDING,
        Capability.VECTOR_STORE,
    }
)
"""Capabilities whose providers may run in a process of their own.

A carrier may not: its codec is called, and must return, for every 20 ms of every call, and its callbacks are verified
while the carrier waits.
"""

SECRETS_LABEL = "provider_configuration|secrets|{id}|{organization_id}"


class ProviderConfiguration(TenantTable, table=True):
    """One provider of one capability, or one extension; `capability` is then its kind.

    `position` is its place in the order of failover; extensions have no order. `secrets` is a JSON object encrypted by
    the key ring. `process` is a `ProcessMode`. `checked_at` is when the last check that
    succeeded began, and `check_failed_at` when the last check began, if it failed.
    """

    __tablename__ = "provider_configuration"
    __table_args__ = (UniqueConstraint("organization_id", "capability", "name"),)

    capability: str
    name: str
    position: int
    process: str = SHARED_PROCESS
    settings: dict[str, Any] = json_column()
    secrets: str = Field(sa_column_kwargs=encryption_label(SECRETS_LABEL))
    updated_at: datetime = Field(default_factory=now)
    checked_at: datetime | None = None
    check_failed_at: datetime | None = None

    @property
    def last_check_failed(self) -> bool:
        """Return whether the last check of the current settings failed."""
        return self.check_failed_at is not None and self.check_failed_at >= self.updated_at


@dataclass(frozen=True, slots=True)
class StoredConfiguration:
    """Columns of a `ProviderConfiguration` that its use needs. Calls read them without objects of the table."""

    id: UUID
    organization_id: UUID
    capability: str
    name: str
    process: str
    settings: Mapping[str, JsonValue]
    secrets: str
    updated_at: datetime
