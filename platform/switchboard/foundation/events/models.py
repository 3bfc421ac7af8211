"""Tables of the outbox: events, targets, deliveries, and attempts."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import (
    RecordTable,
    TenantTable,
    encryption_label,
    index_due,
    now,
    partition_by_month,
)
from switchboard.foundation.encryption.content import Content, ContentObject, ContentText, content_column
from switchboard.foundation.web.row_counts import RowCounter
from switchboard.foundation.work import EPOCH

TARGET_LABEL = "{kind}|webhook_secret|{id}|{organization_id}"


class Event(RecordTable, table=True):
    """A published event. `triggered` are the triggers set for it when it was published. `depth`: length of the
    automation chain that caused it, 0 for users and API clients.
    """

    __tablename__ = "event"
    __table_args__ = (Index(None, "organization_id", "created_at"), partition_by_month("id"))

    name: str
    data: Content[dict[str, Any]] = content_column(ContentObject)
    occurred_at: datetime = Field(default_factory=now)
    depth: int = 0
    triggered: list[UUID] = Field(default_factory=list, sa_type=ARRAY(Uuid))


class DueEvent(RecordTable, table=True):
    """Work that is left for an event, which has the same id.

    `watch_due_at` is when plugins are next notified, and `trigger_due_at` when its triggers are evaluated; None once
    that is done. The row goes when both are, or by a trigger with the event.
    """

    __tablename__ = "event_due"
    __table_args__ = (
        index_due("ix_event_due_watch", "watch_due_at"),
        index_due("ix_event_due_trigger", "trigger_due_at"),
    )

    watch_due_at: datetime | None = Field(default_factory=now)
    trigger_due_at: datetime | None = None


class EventTrigger(TenantTable, table=True):
    """A trigger for events of this name; its id is the owner's (an automation's)."""

    __tablename__ = "event_trigger"
    __table_args__ = (Index(None, "organization_id", "event"),)

    event: str


class EventTarget(TenantTable, table=True):
    """An address that receives an organization's events.

    Three kinds: a webhook `endpoint`, an `agent`'s webhook (for events that concern the agent; the id is the agent's),
    and the `integration`'s (the id is the organization's). No `events` means all. Secrets are encrypted by the keyring.
    `consecutive_failures` counts deliveries that ended `failed` since the last success. `concurrency` is how many
    requests it gets at once: it grows with successes, and is halved by each failure that costs time. No delivery that
    became ready before `drained_until` is left.
    """

    __tablename__ = "event_target"
    __table_args__ = (
        Index(None, "organization_id", "created_at"),
        CheckConstraint("kind in ('endpoint', 'agent', 'integration')", name="kind"),
    )

    kind: str
    url: str | None = None
    description: str | None = None
    events: list[str] = Field(default_factory=list, sa_type=ARRAY(Text))
    enabled: bool = True
    secret: str | None = Field(default=None, sa_column_kwargs=encryption_label(TARGET_LABEL))
    previous_secret: str | None = Field(default=None, sa_column_kwargs=encryption_label(TARGET_LABEL))
    previous_secret_expires_at: datetime | None = None
    consecutive_failures: int = 0
    concurrency: int = 4
    drained_until: datetime = EPOCH
    updated_at: datetime = Field(default_factory=now)


class Delivery(RecordTable, table=True):
    """A delivery of one event to one target; the id is the `X-Webhook-Delivery-Id`.

    `body` holds the exact bytes to send, `subject_id` the id of the call, text message, or simulation that they are
    about. `next_attempt_at` follows the retry schedule; None once the delivery has ended. The target may have been
    deleted.
    """

    __tablename__ = "delivery"
    __row_counter__ = RowCounter("target_id", ("target_kind",))
    __table_args__ = (
        Index(
            "ix_delivery_failed",
            "organization_id",
            "target_id",
            "created_at",
            "id",
            postgresql_where=text("status = 'failed'"),
        ),
        Index(
            "ix_delivery_replayed",
            "organization_id",
            "replayed_from_id",
            postgresql_where=text("replayed_from_id is not null"),
        ),
        Index(None, "organization_id", "target_id", "created_at", "id"),
        Index(None, "organization_id", "created_at", "id"),
        CheckConstraint("status in ('pending', 'delivered', 'failed')", name="status"),
        partition_by_month("id"),
    )

    target_id: UUID
    target_kind: str
    event_type: str
    subject_id: UUID
    body: Content[str] = content_column(ContentText)
    status: str = "pending"
    attempts: int = 0
    next_attempt_at: datetime | None = Field(default_factory=now)
    last_status_code: int | None = None
    last_error: str | None = None
    replayed_from_id: UUID | None = None
    delivered_at: datetime | None = None


class DueDelivery(RecordTable, table=True):
    """The queue entry of a pending delivery, which has the same id. A trigger deletes it with the delivery.

    A delivery is ready from the moment in `due_at`, or it waits until then: for its retry, which is due at
    `next_attempt_at` or by a jitter later, or for the end of the lease under which a worker sends it. `lease_token` is
    a fencing token: only its holder may record a result.
    """

    __tablename__ = "delivery_due"
    __table_args__ = (
        Index(
            "ix_delivery_due_ready",
            text("bucket(organization_id)"),
            "organization_id",
            "target_id",
            "due_at",
            postgresql_where=text("is_ready"),
        ),
        index_due("ix_delivery_due_waiting", "due_at", "not is_ready"),
        Index(
            "ix_delivery_due_leased",
            "organization_id",
            "target_id",
            "lease_token",
            postgresql_where=text("not is_ready"),
        ),
    )

    target_id: UUID
    due_at: datetime = Field(default_factory=now)
    is_ready: bool = True
    lease_token: UUID | None = None


class DeliveryAttempt(SQLModel, table=True):
    """One request of a delivery. `error` is a sentence for the organization, None for a success. A trigger deletes it
    with the delivery.
    """

    __tablename__ = "delivery_attempt"
    __table_args__ = (partition_by_month("delivery_id"),)

    delivery_id: UUID = Field(primary_key=True)
    number: int = Field(primary_key=True)
    organization_id: UUID
    started_at: datetime
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
