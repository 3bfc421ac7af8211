"""Table of simulations."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, text

from switchboard.foundation.database import TenantTable, json_column
from switchboard.foundation.encryption import encrypted_content
from switchboard.foundation.web.row_counts import RowCounter


@encrypted_content("transcript", "criteria")
class Simulation(TenantTable, table=True):
    """A conversation of an agent with a simulated caller, with the fields of `SimulationOut` and its queue entry.

    `due_at` is when a worker may claim it: first its creation, then the end of the current worker's lease; None once it
    is over. `attempts` counts claims, and identifies the last one.
    """

    __tablename__ = "simulation"
    __row_counter__ = RowCounter("agent_id")
    __table_args__ = (
        ForeignKeyConstraint(
            ["organization_id", "agent_id"], ["agent.organization_id", "agent.id"], ondelete="CASCADE"
        ),
        Index(None, "organization_id", "agent_id", "created_at", "id"),
        Index("ix_simulation_due", "due_at", postgresql_where=text("due_at is not null")),
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
    criteria: list[dict[str, Any]] = json_column(list)
    turns: int = 0
    duration_seconds: int = 0
    transcript: list[dict[str, Any]] = json_column(list)
    ended_by: str | None = None
    call_id: UUID | None = None
    draft_revision: UUID | None = None
    error_message: str | None = None
    due_at: datetime | None = None
    attempts: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
