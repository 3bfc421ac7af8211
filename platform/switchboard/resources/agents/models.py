"""Tables of agents and their versions."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.foundation.database import TenantTable, document_column, index_due, json_column, new_id, now, refer_to
from switchboard.foundation.encryption.content import Content, ContentList, content_column
from switchboard.foundation.web.row_counts import RowCounter
from switchboard.plugin_sdk.registry import Capability

PROVIDER_FIELDS = {
    "llm_provider": Capability.LLM,
    "tts_provider": Capability.TEXT_TO_SPEECH,
    "stt_provider": Capability.SPEECH_TO_TEXT,
}


class Agent(TenantTable, table=True):
    """An agent as published. The secret of its webhook is stored with its event target."""

    __tablename__ = "agent"
    __row_counter__ = RowCounter(facets=("agent_type",))
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        CheckConstraint("status in ('active', 'paused')", name="status"),
    )

    name: str
    agent_type: str = "voice"
    status: str = "active"
    version: int = 1
    settings: AgentSettings = document_column(AgentSettings)
    timezone: str | None = None
    required_simulations: list[str] = json_column(list)
    updated_at: datetime = Field(default_factory=now)

    def build_copy(self) -> "Agent":
        """Return a copy that belongs to no session, so that nothing saves it."""
        return Agent(**{name: getattr(self, name) for name in Agent.model_fields})

    def list_fields(self) -> dict[str, JsonValue]:
        """Return what a version keeps of the agent: its settings and the other fields that an update changes."""
        return {
            **self.model_dump(
                mode="json", include={"name", "agent_type", "status", "timezone", "required_simulations"}
            ),
            **self.settings.model_dump(mode="json"),
        }


class AgentVersion(TenantTable, table=True):
    """The settings of an agent after one update: every field but ids, times, and secrets.

    `made_by` is the audit log's actor, None for the platform.
    """

    __tablename__ = "agent_version"
    __row_counter__ = RowCounter("agent_id")
    __table_args__ = (
        UniqueConstraint("organization_id", "agent_id", "version"),
        Index(None, "organization_id", "agent_id", "created_at", "id"),
        refer_to("agent", "agent_id"),
    )

    agent_id: UUID
    version: int
    settings: dict[str, Any] = json_column()
    made_by: str | None = None


class AgentDraft(TenantTable, table=True):
    """The unpublished changes of an agent, at most one draft for each.

    `revision` changes with each save. `changes` are the fields that differ from version `base_version`, as `Agent`
    stores them. `made_by` is the audit log's actor.
    """

    __tablename__ = "agent_draft"
    __table_args__ = (
        UniqueConstraint("organization_id", "agent_id"),
        refer_to("agent", "agent_id"),
    )

    agent_id: UUID
    revision: UUID = Field(default_factory=new_id)
    base_version: int
    changes: dict[str, Any] = json_column()
    made_by: str | None = None
    updated_at: datetime = Field(default_factory=now)


class Simulation(TenantTable, table=True):
    """A conversation of an agent with a simulated caller, with the fields of `SimulationOut` and its queue entry.

    `due_at` is when a worker may claim it: first its creation, then the end of the current worker's lease; None once it
    is over. `attempts` counts claims, and identifies the last one.
    """

    __tablename__ = "simulation"
    __row_counter__ = RowCounter("agent_id")
    __table_args__ = (
        refer_to("agent", "agent_id"),
        Index(None, "organization_id", "agent_id", "created_at", "id"),
        index_due("ix_simulation_due", "due_at"),
        CheckConstraint("mode in ('text', 'audio')", name="mode"),
        CheckConstraint("status in ('queued', 'running', 'passed', 'failed', 'error')", name="status"),
    )

    agent_id: UUID
    name: str
    mode: str
    persona: str
    goal: str
    lines: list[str] = json_column(list)
    max_turns: int
    assertions: list[dict[str, Any]] = json_column(list)
    status: str = "queued"
    score: float | None = None
    criteria: Content[list[dict[str, Any]]] = content_column(ContentList)
    turns: int = 0
    duration_seconds: int = 0
    transcript: Content[list[dict[str, Any]]] = content_column(ContentList)
    ended_by: str | None = None
    call_id: UUID | None = None
    draft_revision: UUID | None = None
    error_message: str | None = None
    due_at: datetime | None = None
    attempts: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
