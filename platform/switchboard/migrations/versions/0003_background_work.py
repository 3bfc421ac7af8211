"""One lease for each process, in place of one for each call; due rows by the bucket of their organization; totals of
lists, into which their changes are merged; counters of calls for the limits of their organizations.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from switchboard.migrations.operations import (
    MONEY,
    TIMESTAMP,
    build_count_function,
    build_index,
    create_tenant_table,
    optional,
    protect_table,
    required,
)

revision = "0003_background_work"
down_revision = "0002_appointments"
oldest_program = "0003_background_work"

DUE = (
    ("ix_appointment_reminder_at", "appointment", "reminder_at", "reminder_at is not null"),
    ("ix_automation_run_due", "automation_run", "due_at", "due_at is not null"),
    ("ix_calendar_changes_due_at", "calendar", "changes_due_at", "changes_due_at is not null"),
    ("ix_calendar_entry_settle_at", "calendar_entry", "settle_at", "settle_at is not null"),
    ("ix_call_analysis_due", "call", "analysis_due_at", "analysis_due_at is not null"),
    ("ix_call_recording_due", "call", "recording_due_at", "recording_due_at is not null"),
    ("ix_call_watched", "call", "watch_at", "watch_at is not null"),
    ("ix_campaign_due", "campaign", "due_at", "due_at is not null"),
    ("ix_event_due_trigger", "event_due", "trigger_due_at", "trigger_due_at is not null"),
    ("ix_event_due_watch", "event_due", "watch_due_at", "watch_due_at is not null"),
    ("ix_knowledge_document_processing", "knowledge_document", "process_after", "status = 'processing'"),
    ("ix_phone_number_provisioning", "phone_number", "created_at", "status = 'provisioning'"),
    ("ix_phone_number_release", "phone_number", "release_at", "status = 'pending_release'"),
    ("ix_phone_number_rent", "phone_number", "billed_until", "status = 'active'"),
    ("ix_privacy_request_due", "privacy_request", "due_at", "due_at is not null"),
    ("ix_simulation_due", "simulation", "due_at", "due_at is not null"),
    ("ix_sms_conversation_reply_due", "sms_conversation", "reply_due_at", "reply_due_at is not null"),
    ("ix_sms_media_fetch_due", "sms_media", "fetch_due_at", "fetch_due_at is not null"),
    ("ix_sms_message_watched", "sms_message", "watch_at", "watch_at is not null"),
    ("ix_vector_deletion_due", "vector_deletion", "due_at", "due_at is not null"),
    ("ix_vector_maintenance_due", "vector_maintenance", "due_at", "due_at is not null"),
)
"""Indexes of due rows: name, table, column, and condition."""
CALL_CHANGES = "call_counter_change (organization_id, running, begun, begun_at)"
RUNNING = (
    "({row}.ended_at is null and {row}.carrier <> 'chat' and {row}.status in ('queued', 'ringing', 'in-progress'))"
)
BEGUN = "coalesce({row}.direction = 'outbound' or {row}.transferred_to not like 'client:%', false)"
"""Conditions that a call is under way, and that it counts as an outbound one."""


def upgrade() -> None:
    op.create_table(
        "process_lease",
        required("node", sa.Text, primary_key=True),
        required("beat_at", TIMESTAMP),
        required("is_worker", sa.Boolean),
    )
    protect_table("process_lease", tenant="", system="select, insert, update, delete")
    # A page has space for the versions of its few rows, so that a beat touches no index.
    op.execute("alter table process_lease set (fillfactor = 50)")
    op.create_index("ix_call_held", "call", ["holder"], postgresql_where=sa.text("holder is not null"))
    # The last ten bits of the id, as `get_bucket` of the program.
    op.execute(
        "create function bucket(uuid) returns integer language sql immutable parallel safe "
        "return ('x' || right($1::text, 3))::bit(12)::integer & 1023"
    )
    op.create_table(
        "row_total",
        required("organization_id", sa.Uuid, primary_key=True),
        required("list", sa.Text, primary_key=True),
        required("parent", sa.Uuid, primary_key=True),
        required("facets", JSONB, primary_key=True),
        required("rows", sa.BigInteger),
        build_index("ix_row_total_none", "organization_id", predicate="rows = 0"),
    )
    protect_table("row_total", tenant="select", system="select, insert, update, delete")
    op.create_table(
        "password_request",
        required("id", sa.Uuid, primary_key=True),
        required("user_id", sa.Uuid),
        required("created_at", TIMESTAMP),
        required("due_at", TIMESTAMP),
    )
    protect_table("password_request", tenant="", system="select, insert, update, delete")
    op.execute("create index ix_password_request_due on password_request (bucket(user_id), due_at)")
    _separate_due_rows()
    for name in ("ix_call_analysis_due_at", "ix_vector_deletion_due_at", "ix_vector_maintenance_due_at"):
        op.execute(f"drop index {name}")
    for name, table, column, predicate in DUE:
        op.execute(f"drop index if exists {name}")
        op.execute(f"create index {name} on {table} (bucket(organization_id), {column}) where {predicate}")
    _count_calls()
    op.add_column("account", required("spent", MONEY, server_default="0"))
    op.alter_column("account", "spent", server_default=None)
    op.add_column("account", optional("spent_since", TIMESTAMP))
    op.add_column("campaign", required("in_flight", sa.Integer, server_default="0"))
    op.alter_column("campaign", "in_flight", server_default=None)
    for table in ("campaign", "campaign_contact"):
        op.execute(f"alter table {table} no force row level security")
    op.execute(
        "update campaign set in_flight = counted.contacts from (select campaign_id, count(*) as contacts "
        "from campaign_contact where status in ('dialing', 'in_progress') group by 1) counted "
        "where counted.campaign_id = campaign.id"
    )
    for table in ("campaign", "campaign_contact"):
        op.execute(f"alter table {table} force row level security")


def _separate_due_rows() -> None:
    op.execute("alter table event_target add column concurrency integer not null default 4")
    op.execute("alter table event_target add column drained_until timestamptz not null default 'epoch'")
    for column in ("concurrency", "drained_until"):
        op.execute(f"alter table event_target alter column {column} drop default")
    create_tenant_table(
        "delivery_due",
        required("target_id", sa.Uuid),
        required("due_at", TIMESTAMP),
        required("is_ready", sa.Boolean),
        optional("lease_token", sa.Uuid),
        sa.ForeignKeyConstraint(["id"], ["delivery.id"], ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        system="select, update, delete",
    )
    for name, columns, predicate in (
        ("ready", "bucket(organization_id), organization_id, target_id, due_at", "is_ready"),
        ("waiting", "bucket(organization_id), due_at", "not is_ready"),
        ("leased", "organization_id, target_id, lease_token", "not is_ready"),
    ):
        op.execute(f"create index ix_delivery_due_{name} on delivery_due ({columns}) where {predicate}")
    create_tenant_table(
        "event_due",
        optional("watch_due_at", TIMESTAMP),
        optional("trigger_due_at", TIMESTAMP),
        sa.ForeignKeyConstraint(["id"], ["event.id"], ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        system="select, update, delete",
    )
    tables = "delivery", "delivery_due", "event", "event_due"
    for table in tables:  # the owner reads and writes rows only here
        op.execute(f"alter table {table} no force row level security")
    op.execute(
        "insert into delivery_due (id, organization_id, created_at, target_id, due_at, is_ready) "
        "select id, organization_id, created_at, target_id, due_at, false from delivery where status = 'pending'"
    )
    op.execute(
        "insert into event_due (id, organization_id, created_at, watch_due_at, trigger_due_at) "
        "select id, organization_id, created_at, watch_due_at, trigger_due_at from event "
        "where watch_due_at is not null or trigger_due_at is not null"
    )
    for table in tables:
        op.execute(f"alter table {table} force row level security")
    op.execute("alter table event drop column watch_due_at, drop column trigger_due_at")
    op.execute("grant update (data) on event to switchboard_tenant")  # rotations of keys lock the rows
    op.execute("drop index ix_delivery_due")
    op.execute("drop index ix_delivery_leased")
    op.execute("alter table delivery drop column due_at, drop column lease_token")


def _count_calls() -> None:
    """Count the calls that the limits of organizations compare, as `read_call_usage` reads the counts."""
    op.create_table(
        "call_counter",
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
        required("running", sa.Integer),
        required("begun", sa.Integer),
        optional("since", TIMESTAMP),
    )
    protect_table("call_counter", tenant="select, insert, update")
    op.execute("alter table call_counter set (fillfactor = 50)")
    # No foreign key: the organization's row would be locked with each call.
    op.create_table(
        "call_counter_change",
        required("organization_id", sa.Uuid, primary_key=True),
        required("id", sa.Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()")),
        required("running", sa.Integer),
        required("begun", sa.Integer),
        required("begun_at", TIMESTAMP),
    )
    protect_table("call_counter_change", tenant="select, delete", system="select, delete")
    op.execute("create policy owner on call_counter_change to current_user using (true) with check (true)")
    op.execute("alter table call_counter_change set (autovacuum_vacuum_scale_factor = 0.02)")
    # Forced row-level security applies to the owner too, who would count no call.
    op.execute("alter table call no force row level security")
    op.execute(
        f"insert into {CALL_CHANGES} select organization_id, count(*), 0, now() from call "  # noqa: S608
        f"where {RUNNING.format(row='call')} group by 1"
    )
    op.execute("alter table call force row level security")
    new, old = ([f"{each.format(row=row)}::integer" for each in (RUNNING, BEGUN)] for row in ("new", "old"))
    # An older count of begun calls is not used (`LONGEST_COUNT`).
    is_counted = f"({RUNNING.format(row='old')} or old.created_at > now() - interval '2 days')"
    difference = [f"{later} - {earlier}" for later, earlier in zip(new, old, strict=True)]
    for event, columns, row, (running, begun), condition in (
        ("insert", "", "new", new, "true"),
        ("update", "of status, ended_at, transferred_to", "new", difference, "true"),
        ("delete", "", "old", [f"-{earlier}" for earlier in old], is_counted),
    ):
        name = f"count_call_{event}_for_limits"
        values = f"{row}.organization_id, {running}, {begun}, {row}.created_at"
        op.execute(build_count_function(name, f"insert into {CALL_CHANGES} values ({values});"))  # noqa: S608
        op.execute(
            f"create trigger {name} after {event} {columns} on call for each row "
            f"when ({condition} and ({running} <> 0 or {begun} <> 0)) execute function {name}()"
        )
