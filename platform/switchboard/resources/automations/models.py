"""Tables of automations and their runs."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, JsonValue
from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text

from switchboard.foundation.database import TenantTable, index_due, json_column, refer_to
from switchboard.foundation.encryption.content import (
    Content,
    ContentList,
    ContentObject,
    ContentText,
    content_column,
)
from switchboard.foundation.web.row_counts import RowCounter
from switchboard.plugin_sdk import JsonObject

ActionStatus = Literal["pending", "running", "completed", "failed", "skipped"]


class Automation(TenantTable, table=True):
    """An automation, with the API's Automation fields.

    The JSON columns hold what `schemas.py` has validated. `run_count` includes skipped runs.
    """

    __tablename__ = "automation"
    __row_counter__ = RowCounter()
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
    """One action of a run: its definition when the run started, and its result. `attempts` counts started attempts."""

    type: str
    params: dict[str, JsonValue]
    status: ActionStatus = "pending"
    attempts: int = 0
    error: str | None = None
    result: JsonObject | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class AutomationRun(TenantTable, table=True):
    """A run of an automation for one event, and at the same time its queue entry.

    `event` is the context of conditions and templates. `due_at` is when a worker may take the next action: the end of
    the lease while one is claimed, and None after the run. `lease_token` is a fencing token: only its holder may record
    a result. `depth` is 1 if a user or an API client caused the event, plus 1 for each automation in between.
    """

    __tablename__ = "automation_run"
    __row_counter__ = RowCounter("automation_id")
    __table_args__ = (
        UniqueConstraint("organization_id", "automation_id", "event_id"),
        Index(None, "organization_id", "automation_id", "created_at", "id"),
        index_due("ix_automation_run_due", "due_at"),
        Index(
            "ix_automation_run_ended",
            "organization_id",
            "completed_at",
            postgresql_where=text("completed_at is not null"),
        ),
        Index("ix_automation_run_over", "completed_at", postgresql_where=text("completed_at is not null")),
        refer_to("automation", "automation_id"),
        CheckConstraint("status in ('running', 'completed', 'failed', 'skipped')", name="status"),
    )

    automation_id: UUID
    event_id: UUID
    trigger_event: str
    event: Content[dict[str, Any]] = content_column(ContentObject)
    depth: int
    status: str = "running"
    error_message: Content[str | None] = content_column(ContentText, nullable=True)
    actions: Content[list[Any]] = content_column(ContentList)
    due_at: datetime | None = None
    lease_token: UUID | None = None
    completed_at: datetime | None = None

    def records(self) -> list[ActionRecord]:
        """Return the actions in order."""
        return [ActionRecord.model_validate(kept) for kept in self.actions.value]

    @property
    def is_lost(self) -> bool:
        """Return whether the event or the actions cannot be decrypted, so that the run cannot go on."""
        return not (self.event.is_readable and self.actions.is_readable)

    def keep(self, records: list[ActionRecord]) -> None:
        """Store the actions."""
        self.actions = Content([record.model_dump(mode="json") for record in records])
