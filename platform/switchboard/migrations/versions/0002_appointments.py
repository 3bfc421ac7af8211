"""Calendars, appointment types, and appointments with their entries in calendars."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from switchboard.migrations.operations import (
    TIMESTAMP,
    build_choice,
    build_index,
    build_reference,
    create_tenant_table,
    optional,
    required,
)

revision = "0002_appointments"
down_revision = "0001_schema"
oldest_program = "0001_schema"


def upgrade() -> None:
    create_tenant_table(
        "calendar",
        required("provider", sa.Text),
        required("name", sa.Text),
        required("settings", JSONB),
        required("secrets", sa.Text),
        required("remote_id", sa.Text),
        optional("time_zone", sa.Text),
        required("status", sa.Text),
        optional("error_message", sa.Text),
        required("changes_cursor", sa.Text),
        optional("changes_due_at", TIMESTAMP),
        required("watch_id", sa.Text),
        optional("watch_due_at", TIMESTAMP),
        required("updated_at", TIMESTAMP),
        build_choice("status", "connected, disconnected"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
        build_index("ix_calendar_changes_due_at", "changes_due_at", predicate="changes_due_at is not null"),
    )
    # For the rotation of keys, as of the settings of providers, and for calendars that are asked for changes.
    op.execute("grant select (id, organization_id, secrets, changes_due_at) on calendar to switchboard_system")
    op.execute("create policy system on calendar for select to switchboard_system using (true)")
    create_tenant_table(
        "appointment_type",
        required("name", sa.Text),
        required("settings", JSONB),
        required("updated_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "appointment",
        required("appointment_type_id", sa.Uuid),
        required("status", sa.Text),
        required("starts_at", TIMESTAMP),
        required("ends_at", TIMESTAMP),
        required("time_zone", sa.Text),
        required("phone_number", sa.Text),
        required("name", sa.Text),
        required("fields", JSONB),
        optional("call_id", sa.Uuid),
        required("failed_checks", sa.Integer),
        optional("confirmed_at", TIMESTAMP),
        optional("canceled_at", TIMESTAMP),
        optional("reminder_at", TIMESTAMP),
        required("cause_depth", sa.Integer),
        required("updated_at", TIMESTAMP),
        build_choice("status", "pending, booked, canceled, failed"),
        build_reference("appointment_type_id", "appointment_type"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
        sa.Index(None, "organization_id", "appointment_type_id", "starts_at"),
        sa.Index(None, "organization_id", "phone_number"),
        sa.Index(None, "organization_id", "ends_at"),
        build_index("ix_appointment_call", "organization_id, call_id", predicate="call_id is not null"),
        build_index("ix_appointment_reminder_at", "reminder_at", predicate="reminder_at is not null"),
    )
    op.execute("grant select (id, organization_id, status, ends_at, reminder_at) on appointment to switchboard_system")
    op.execute("create policy system on appointment for select to switchboard_system using (true)")
    create_tenant_table(
        "calendar_entry",
        required("appointment_id", sa.Uuid),
        required("calendar_id", sa.Uuid),
        required("state", sa.Text),
        required("starts_at", TIMESTAMP),
        required("ends_at", TIMESTAMP),
        required("minutes_before", sa.Integer),
        required("minutes_after", sa.Integer),
        required("event_id", sa.Text),
        required("event_version", sa.Text),
        optional("moved_entry_id", sa.Uuid),
        optional("settle_at", TIMESTAMP),
        build_choice("state", "held, booked, releasing"),
        build_reference("appointment_id", "appointment"),
        build_reference("calendar_id", "calendar"),
        sa.Index(None, "organization_id", "appointment_id"),
        sa.Index(None, "organization_id", "calendar_id", "ends_at"),
        build_index("ix_calendar_entry_settle_at", "settle_at", predicate="settle_at is not null"),
        system="select",
    )
