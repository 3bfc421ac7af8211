"""Tables of calendars, appointment types, and appointments."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import (
    TenantTable,
    document_column,
    encryption_label,
    index_due,
    json_column,
    now,
    refer_to,
)
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings

LOCAL: Final = "local"
"""The built-in provider: its calendars have the appointments and nothing else."""
SECRETS_LABEL = "calendar|secrets|{id}|{organization_id}"


class Calendar(TenantTable, table=True):
    """A calendar that appointments are booked in.

    `settings` and `secrets` are those of the provider's `Account`; `secrets` is a JSON object encrypted by the key
    ring, with the tokens of an account that is connected by OAuth. `remote_id` is the provider's own id of the
    calendar, empty for the built-in provider. A `disconnected` calendar refuses the account; `error_message` says why.
    `changes_due_at` is when the calendar is asked for what people have changed in it, None without coming appointments;
    `changes_cursor` is the provider's own. `watch_id` is that of the provider's promise to report changes, empty
    without one; `watch_due_at` is when it is renewed, or asked for once more.
    """

    __tablename__ = "calendar"
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        index_due("ix_calendar_changes_due_at", "changes_due_at"),
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
    changes_cursor: str = ""
    changes_due_at: datetime | None = None
    watch_id: str = ""
    watch_due_at: datetime | None = None
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
    of its type when it was booked or moved. `reminder_at` is when the next reminder is due. `cause_depth` is the length
    of the automation chain that changed it last; its events continue the chain. `call_id` is that of the call in which
    it was booked, which may be deleted by now. `failed_checks` counts people who called from another number and could
    not show that it is theirs.
    """

    __tablename__ = "appointment"
    __table_args__ = (
        refer_to("appointment_type", "appointment_type_id"),
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "created_at", "id"),
        Index(None, "organization_id", "appointment_type_id", "starts_at"),
        Index(None, "organization_id", "phone_number"),
        Index(None, "organization_id", "ends_at"),
        Index("ix_appointment_call", "organization_id", "call_id", postgresql_where=text("call_id is not null")),
        index_due("ix_appointment_reminder_at", "reminder_at"),
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
    call_id: UUID | None = None
    failed_checks: int = 0
    confirmed_at: datetime | None = None
    canceled_at: datetime | None = None
    reminder_at: datetime | None = None
    cause_depth: int = 0
    updated_at: datetime = Field(default_factory=now)


class CalendarEntry(TenantTable, table=True):
    """The time that an appointment takes in one calendar; `id` is the key of its event there.

    - `held`: the time is taken while the calendar is asked.
    - `booked`: the calendar has the event, with the provider's `event_id`, and `event_version` when the platform has
      seen it last. Both are empty in a calendar of the built-in provider.
    - `releasing`: the event must not stay in the calendar, and is deleted until the calendar confirms it.

    `moved_entry_id` is that of the entry whose event is moved to this time; released, the event is moved back.
    `settle_at` is when the reconciler settles an entry that is not `booked`. `minutes_before` and `minutes_after` are
    the buffers of the appointment's type.
    """

    __tablename__ = "calendar_entry"
    __table_args__ = (
        refer_to("appointment", "appointment_id"),
        refer_to("calendar", "calendar_id"),
        Index(None, "organization_id", "appointment_id"),
        Index(None, "organization_id", "calendar_id", "ends_at"),
        index_due("ix_calendar_entry_settle_at", "settle_at"),
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
