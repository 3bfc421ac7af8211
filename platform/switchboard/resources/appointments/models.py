"""Tables of calendars, appointment types, and appointments."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, document_column, encryption_label, json_column, now
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings

SECRETS_LABEL = "calendar|secrets|{id}|{organization_id}"


class Calendar(TenantTable, table=True):
    """A calendar that appointments are booked in.

    `settings` and `secrets` are those of the provider's `Account`; `secrets` is a JSON object encrypted by the key
    ring, with the tokens of an account that is connected by OAuth. `remote_id` is the provider's own id of the
    calendar, empty for the built-in provider. A `disconnected` calendar refuses the account; `error_message` says why.
    """

    __tablename__ = "calendar"
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        CheckConstraint("status in ('connected', 'disconnected')", name="status"),
    )

    provider: str
    name: str
    settings: dict[str, Any] = json_column()
    secrets: str = Field(sa_column_kwargs=encryption_label(SECRETS_LABEL))
    remote_id: str = ""
    time_zone: str | None = None
    status: str = "connected"
    error_message: str | None = None
    updated_at: datetime = Field(default_factory=now)


class AppointmentType(TenantTable, table=True):
    """A kind of appointment, with the rules by which it is offered."""

    __tablename__ = "appointment_type"
    __table_args__ = (UniqueConstraint("organization_id", "id"), Index(None, "organization_id", "created_at", "id"))

    name: str
    settings: AppointmentTypeSettings = document_column(AppointmentTypeSettings)
    updated_at: datetime = Field(default_factory=now)


class Appointment(TenantTable, table=True):
    """An appointment of a person, with the API's Appointment fields.

    It is `pending` while its calendars are asked, and `failed` if one of them did not confirm it. `time_zone` is that
    of its type when it was booked or moved.
    """

    __tablename__ = "appointment"
    __table_args__ = (
        ForeignKeyConstraint(
            ["organization_id", "appointment_type_id"],
            ["appointment_type.organization_id", "appointment_type.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        Index(None, "organization_id", "appointment_type_id", "starts_at"),
        Index(None, "organization_id", "phone_number"),
        CheckConstraint("status in ('pending', 'booked', 'canceled', 'failed')", name="status"),
    )

    appointment_type_id: UUID
    status: str = "pending"
    starts_at: datetime
    ends_at: datetime
    time_zone: str
    phone_number: str
    name: str
    fields: dict[str, Any] = json_column()
    canceled_at: datetime | None = None
    updated_at: datetime = Field(default_factory=now)


class CalendarEntry(TenantTable, table=True):
    """The time that an appointment takes in one calendar; `id` is the key of its event there.

    - `held`: the time is taken while the calendar is asked.
    - `booked`: the calendar has the event, with the provider's `event_id` and `event_version`. Both are empty in a
      calendar of the built-in provider.
    - `releasing`: the event must not stay in the calendar, and is deleted until the calendar confirms it.

    `moved_entry_id` is that of the entry whose event is moved to this time; released, the event is moved back.
    `settle_at` is when the reconciler settles an entry that is not `booked`. `minutes_before` and `minutes_after` are
    the buffers of the appointment's type.
    """

    __tablename__ = "calendar_entry"
    __table_args__ = (
        ForeignKeyConstraint(
            ["organization_id", "appointment_id"], ["appointment.organization_id", "appointment.id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["organization_id", "calendar_id"], ["calendar.organization_id", "calendar.id"], ondelete="CASCADE"
        ),
        Index(None, "organization_id", "appointment_id"),
        Index(None, "organization_id", "calendar_id", "ends_at"),
        Index("ix_calendar_entry_settle_at", "settle_at", postgresql_where=text("settle_at is not null")),
        CheckConstraint("state in ('held', 'booked', 'releasing')", name="state"),
    )

    appointment_id: UUID
    calendar_id: UUID
    state: str = "held"
    starts_at: datetime
    ends_at: datetime
    minutes_before: int = 0
    minutes_after: int = 0
    event_id: str = ""
    event_version: str = ""
    moved_entry_id: UUID | None = None
    settle_at: datetime | None = None
