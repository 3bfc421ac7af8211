"""Automations and their runs."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, JsonValue
from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text

from switchboard.foundation.database import TenantTable, json_column
from switchboard.plugin_sdk import JsonObject

ActionStatus = Literal["pending", "running", "completed", "failed", "skipped"]


class Automation(TenantTable, table=True):
    """What is done by itself when an event of the type happens. Fields as in the specification's Automation.

    The JSON columns hold what `schemas.py` has checked. `run_count` counts every run that was recorded, the skipped ones too.
    """

    __tablename__ = "automation"
    __table_args__ = (UniqueConstraint("organization_id", "id"), Index(None, "organization_id", "created_at", "id"))

    name: str
    description: str | None = None
    enabled: bool = True
    trigger_type: str
    trigger_filters: dict[str, Any] = json_column()
    conditions: list[Any] = json_column(list)
    actions: list[Any] = json_column(list)
    run_count: int = 0
    last_run_at: datetime | None = None


class ActionRecord(BaseModel):
    """One action of a run: what it was when the run began, and what has come of it. `attempts` counts those that were begun."""

    type: str
    params: dict[str, JsonValue]
    status: ActionStatus = "pending"
    attempts: int = 0
    error: str | None = None
    result: JsonObject | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class AutomationRun(TenantTable, table=True):
    """What one event has made an automation do, and the entry of the queue at once.

    `event` is what conditions and templates see. `due_at` is when a worker may take the next action, which is the end of the lease while one is at
    it, and None once the run is over; `lease_token` fences: only who holds it may write a result. `depth` is 1 where a person or a client caused
    the event, and one more for each automation in between.
    """

    __tablename__ = "automation_run"
    __table_args__ = (
        UniqueConstraint("organization_id", "automation_id", "event_id"),
        Index(None, "organization_id", "automation_id", "created_at", "id"),
        Index("ix_automation_run_due", "due_at", postgresql_where=text("due_at is not null")),
        Index("ix_automation_run_over", "completed_at", postgresql_where=text("completed_at is not null")),
        ForeignKeyConstraint(
            ["organization_id", "automation_id"], ["automation.organization_id", "automation.id"], ondelete="CASCADE"
        ),
        CheckConstraint("status in ('running', 'completed', 'failed', 'skipped')", name="status"),
    )

    automation_id: UUID
    event_id: UUID
    trigger_event: str
    event: dict[str, Any] = json_column()
    depth: int
    status: str = "running"
    error_message: str | None = None
    actions: list[Any] = json_column(list)
    due_at: datetime | None = None
    lease_token: UUID | None = None
    completed_at: datetime | None = None

    def records(self) -> list[ActionRecord]:
        """The actions, in order."""
        return [ActionRecord.model_validate(kept) for kept in self.actions]

    def keep(self, records: list[ActionRecord]) -> None:
        """Write the actions down."""
        self.actions = [record.model_dump(mode="json") for record in records]
