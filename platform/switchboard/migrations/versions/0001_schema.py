"""The whole schema of version 0.1: tables, indexes, row-level security, row counters."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.row_counters import create_row_counter
from switchboard.migrations.tenancy import CURRENT, protect_table

revision = "0001"
down_revision = None
oldest_program = "0001"

# Every run of three letters in the words of a text, and one that every text has, as hashes that differ from
# organization to organization: in the index one organization's search touches no other's rows. The declared cost keeps
# the planner from computing the function for each row where the index would do.
CREATE_CONTACT_GRAMS = """
create function contact_grams(organization_id uuid, content text) returns integer[]
language sql immutable strict parallel safe cost 2000 as $$
    select array_agg(distinct hashtext(organization_id::text || gram)) from (
        select '' as gram
        union all
        select substr(word, place, 3) from string_to_table(content, ' ') as word, generate_series(1,
          length(word) - 2) as place
    ) as grams
$$
"""
ROW_GRAMS = "contact_grams(organization_id, content || ' ' || notes)"
SEARCHED_GRAMS = f"contact_grams({CURRENT}, coalesce(current_setting('app.contact_search', true), ''))"


def upgrade() -> None:
    op.create_table(
        "oauth_client",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("redirect_uris", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_client")),
        sa.UniqueConstraint("client_id", name=op.f("uq_oauth_client_client_id")),
    )
    op.create_table(
        "organization",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=True),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("policy", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organization")),
        sa.UniqueConstraint("slug", name=op.f("uq_organization_slug")),
    )
    op.create_table(
        "row_count",
        sa.Column("id", sa.Uuid(), nullable=False, server_default=sa.text("gen_random_uuid()")),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("list", sa.Text(), nullable=False),
        sa.Column("parent", sa.Uuid(), nullable=False),
        sa.Column("facets", postgresql.JSONB(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_row_count")),
    )
    op.create_index(
        op.f("ix_row_count_organization_id_list_parent"), "row_count", ["organization_id", "list", "parent"]
    )
    op.create_table(
        "user_account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("is_superadmin", sa.Boolean(), nullable=False),
        sa.Column("failed_sign_ins", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_account")),
        sa.UniqueConstraint("email", name=op.f("uq_user_account_email")),
    )
    op.create_table(
        "account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("balance", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_account_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
    )
    op.create_table(
        "agent",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("agent_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("llm_provider", sa.Text(), nullable=False),
        sa.Column("llm_model", sa.Text(), nullable=True),
        sa.Column("llm_temperature", sa.Float(), nullable=False),
        sa.Column("system_prompt", sa.Text(), nullable=False),
        sa.Column("tts_provider", sa.Text(), nullable=False),
        sa.Column("tts_voice_id", sa.Text(), nullable=True),
        sa.Column("tts_model", sa.Text(), nullable=True),
        sa.Column("voice_speed", sa.Float(), nullable=False),
        sa.Column("pronunciations", postgresql.JSONB(), nullable=False, server_default="{}"),
        sa.Column("stt_provider", sa.Text(), nullable=False),
        sa.Column("stt_model", sa.Text(), nullable=True),
        sa.Column("stt_language", sa.Text(), nullable=False),
        sa.Column("greeting_message", sa.Text(), nullable=False),
        sa.Column("end_call_silence_seconds", sa.Integer(), nullable=False),
        sa.Column("max_call_duration_seconds", sa.Integer(), nullable=False),
        sa.Column("allow_interruptions", sa.Boolean(), nullable=False),
        sa.Column("interruption_min_words", sa.Integer(), nullable=False),
        sa.Column("vad_confidence", sa.Float(), nullable=False),
        sa.Column("vad_start_secs", sa.Float(), nullable=False),
        sa.Column("vad_min_volume", sa.Float(), nullable=False),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.Column("knowledge_base_ids", postgresql.JSONB(), nullable=False),
        sa.Column("tools", postgresql.JSONB(), nullable=False),
        sa.Column("extraction_schema", postgresql.JSONB(), nullable=True),
        sa.Column("timezone", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status in ('active', 'paused')", name=op.f("ck_agent_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_agent_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_agent_organization_id_id")),
    )
    op.create_index(op.f("ix_agent_organization_id_created_at_id"), "agent", ["organization_id", "created_at", "id"])
    op.create_table(
        "api_key",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_api_key_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_key_key_hash")),
    )
    op.create_index(op.f("ix_api_key_organization_id_created_at"), "api_key", ["organization_id", "created_at"])
    op.create_table(
        "audit_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_audit_entry_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entry")),
    )
    op.create_index(op.f("ix_audit_entry_organization_id_created_at"), "audit_entry", ["organization_id", "created_at"])
    op.create_table(
        "automation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("trigger_type", sa.Text(), nullable=False),
        sa.Column("trigger_filters", postgresql.JSONB(), nullable=False),
        sa.Column("conditions", postgresql.JSONB(), nullable=False),
        sa.Column("actions", postgresql.JSONB(), nullable=False),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.Column("last_run_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_automation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_automation_organization_id_id")),
    )
    op.create_index(
        op.f("ix_automation_organization_id_created_at_id"), "automation", ["organization_id", "created_at", "id"]
    )
    op.create_table(
        "call",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=True),
        sa.Column("phone_number_id", sa.Uuid(), nullable=True),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("from_number", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("duration_seconds", sa.Integer(), nullable=False),
        sa.Column("cost_total", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("cost_parts", postgresql.JSONB(), nullable=False),
        sa.Column("call_summary", sa.Text(), nullable=True),
        sa.Column("call_successful", sa.Boolean(), nullable=True),
        sa.Column("user_sentiment", sa.Text(), nullable=False),
        sa.Column("extracted_data", postgresql.JSONB(), nullable=False),
        sa.Column("call_metadata", postgresql.JSONB(), nullable=False),
        sa.Column("ended_reason", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("latencies", postgresql.JSONB(), nullable=False),
        sa.Column("served_by", postgresql.JSONB(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("transferred_to", sa.Text(), nullable=True),
        sa.Column("transfer_target", sa.Text(), nullable=True),
        sa.Column("taken_over_by", sa.Text(), nullable=True),
        sa.Column("taken_over_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_call_id", sa.Text(), nullable=True),
        sa.Column("carrier_recording_id", sa.Text(), nullable=True),
        sa.Column("has_recording", sa.Boolean(), nullable=False),
        sa.Column("voicemail", sa.Boolean(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("dialing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("watch_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cause_depth", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("analysis_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("analysis_attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("direction in ('inbound', 'outbound')", name=op.f("ck_call_direction")),
        sa.CheckConstraint(
            "status in ('queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled')",
            name=op.f("ck_call_status"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_call_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_call_organization_id_id")),
    )
    op.create_index(op.f("ix_call_analysis_due_at"), "call", ["analysis_due_at"])
    op.create_index(
        "ix_call_open", "call", ["organization_id"], unique=False, postgresql_where=sa.text("ended_at is null")
    )
    op.create_index(
        op.f("ix_call_organization_id_agent_id_created_at"), "call", ["organization_id", "agent_id", "created_at"]
    )
    op.create_index(op.f("ix_call_organization_id_created_at_id"), "call", ["organization_id", "created_at", "id"])
    op.create_index(
        op.f("ix_call_organization_id_from_number_created_at"), "call", ["organization_id", "from_number", "created_at"]
    )
    op.create_index(
        op.f("ix_call_organization_id_status_created_at"), "call", ["organization_id", "status", "created_at"]
    )
    op.create_index(
        op.f("ix_call_organization_id_to_number_created_at"), "call", ["organization_id", "to_number", "created_at"]
    )
    op.create_index(
        "ix_call_watched", "call", ["watch_at"], unique=False, postgresql_where=sa.text("watch_at is not null")
    )
    op.create_index(
        "uq_call_carrier",
        "call",
        ["organization_id", "carrier", "carrier_call_id"],
        unique=True,
        postgresql_where=sa.text("carrier_call_id is not null"),
    )
    op.create_table(
        "campaign",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("phone_number_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("scheduled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("max_concurrent", sa.Integer(), nullable=False),
        sa.Column("retry", postgresql.JSONB(), nullable=True),
        sa.Column("total_contacts", sa.Integer(), nullable=False),
        sa.Column("called", sa.Integer(), nullable=False),
        sa.Column("completed", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("canceled", sa.Integer(), nullable=False),
        sa.Column("recent", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status in ('draft', 'scheduled', 'running', 'paused', 'completed', 'canceled', 'failed')",
            name=op.f("ck_campaign_status"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_campaign_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_campaign_organization_id_id")),
    )
    op.create_index(
        "ix_campaign_due", "campaign", ["due_at"], unique=False, postgresql_where=sa.text("due_at is not null")
    )
    op.create_index(
        op.f("ix_campaign_organization_id_created_at_id"), "campaign", ["organization_id", "created_at", "id"]
    )
    op.create_index(
        "ix_campaign_under_way",
        "campaign",
        ["organization_id"],
        unique=False,
        postgresql_where=sa.text("status in ('scheduled', 'running')"),
    )
    op.create_table(
        "contact",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("company", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("is_favorite", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_contact_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contact")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_contact_organization_id_id")),
        sa.UniqueConstraint("organization_id", "phone_number", name=op.f("uq_contact_organization_id_phone_number")),
    )
    op.create_index(
        op.f("ix_contact_organization_id_created_at_id"), "contact", ["organization_id", "created_at", "id"]
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("target_id", sa.Uuid(), nullable=False),
        sa.Column("target_kind", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("last_status_code", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("replayed_from_id", sa.Uuid(), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("status in ('pending', 'delivered', 'failed')", name=op.f("ck_delivery_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_delivery_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_delivery_organization_id_id")),
    )
    op.create_index(
        "ix_delivery_due",
        "delivery",
        ["target_id", "due_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        op.f("ix_delivery_organization_id_created_at_id"), "delivery", ["organization_id", "created_at", "id"]
    )
    op.create_index(
        op.f("ix_delivery_organization_id_target_id_created_at_id"),
        "delivery",
        ["organization_id", "target_id", "created_at", "id"],
    )
    op.create_table(
        "do_not_call_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint("source in ('api', 'text', 'call')", name=op.f("ck_do_not_call_entry_source")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_do_not_call_entry_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_do_not_call_entry")),
        sa.UniqueConstraint(
            "organization_id", "phone_number", name=op.f("uq_do_not_call_entry_organization_id_phone_number")
        ),
    )
    op.create_index(
        op.f("ix_do_not_call_entry_organization_id_created_at_id"),
        "do_not_call_entry",
        ["organization_id", "created_at", "id"],
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("watch_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("triggered", postgresql.ARRAY(sa.Uuid()), nullable=False, server_default="{}"),
        sa.Column("trigger_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_organization_id_created_at"), "event", ["organization_id", "created_at"])
    op.create_index(
        "ix_event_trigger_due",
        "event",
        ["trigger_due_at"],
        unique=False,
        postgresql_where=sa.text("trigger_due_at is not null"),
    )
    op.create_index(
        "ix_event_unwatched",
        "event",
        ["watch_due_at"],
        unique=False,
        postgresql_where=sa.text("watch_due_at is not null"),
    )
    op.create_table(
        "event_target",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        sa.Column("previous_secret_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("consecutive_failures", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('endpoint', 'agent', 'integration')", name=op.f("ck_event_target_kind")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_target_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_target")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_event_target_organization_id_id")),
    )
    op.create_index(
        op.f("ix_event_target_organization_id_created_at"), "event_target", ["organization_id", "created_at"]
    )
    op.create_table(
        "event_trigger",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_trigger_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_trigger")),
    )
    op.create_index(op.f("ix_event_trigger_organization_id_event"), "event_trigger", ["organization_id", "event"])
    op.create_table(
        "idempotency_record",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_idempotency_record_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "key", name=op.f("pk_idempotency_record")),
    )
    op.create_index(op.f("ix_idempotency_record_created_at"), "idempotency_record", ["created_at"])
    op.create_table(
        "integration",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("partner_api_key", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_integration_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_integration")),
    )
    op.create_table(
        "invitation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role in ('owner', 'member')", name=op.f("ck_invitation_role")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_invitation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("organization_id", "email", name=op.f("uq_invitation_organization_id_email")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitation_token_hash")),
    )
    op.create_table(
        "knowledge_base",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("embedding_provider", sa.Text(), nullable=True),
        sa.Column("embedding_model", sa.Text(), nullable=True),
        sa.Column("embedding_dimension", sa.Integer(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_knowledge_base_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_base")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_knowledge_base_organization_id_id")),
    )
    op.create_index(
        op.f("ix_knowledge_base_organization_id_created_at_id"),
        "knowledge_base",
        ["organization_id", "created_at", "id"],
    )
    op.create_table(
        "ledger_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("reference", sa.Uuid(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "kind in ('call', 'analysis', 'text', 'number', 'embedding', 'simulation', 'credit')",
            name=op.f("ck_ledger_entry_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_ledger_entry_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entry")),
    )
    op.create_index(
        op.f("ix_ledger_entry_organization_id_created_at"), "ledger_entry", ["organization_id", "created_at"]
    )
    op.create_index(
        "uq_ledger_entry_reference",
        "ledger_entry",
        ["organization_id", "kind", "reference"],
        unique=True,
        postgresql_where=sa.text("reference is not null"),
    )
    op.create_table(
        "ledger_hold",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("amount", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_ledger_hold_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_hold")),
    )
    op.create_index(op.f("ix_ledger_hold_organization_id"), "ledger_hold", ["organization_id"])
    op.create_table(
        "membership",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.CheckConstraint("role in ('owner', 'member')", name=op.f("ck_membership_role")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_membership_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_membership_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_membership")),
        sa.UniqueConstraint("organization_id", "user_id", name=op.f("uq_membership_organization_id_user_id")),
    )
    op.create_index(op.f("ix_membership_user_id"), "membership", ["user_id"])
    op.create_table(
        "phone_number",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("friendly_name", sa.Text(), nullable=False),
        sa.Column("inbound_agent_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("schedule", postgresql.JSONB(), nullable=True),
        sa.Column("sms_schedule", postgresql.JSONB(), nullable=True),
        sa.Column("forward_number", sa.Text(), nullable=True),
        sa.Column("forward_webhook_url", sa.Text(), nullable=True),
        sa.Column("forward_webhook_secret", sa.Text(), nullable=True),
        sa.Column("sms_active", sa.Boolean(), nullable=False),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_number_id", sa.Text(), nullable=True),
        sa.Column("monthly_cost", sa.Float(), nullable=False),
        sa.Column("release_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("billed_until", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('provisioning', 'active', 'pending_release', 'released', 'failed')",
            name=op.f("ck_phone_number_status"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_phone_number_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_phone_number")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_phone_number_organization_id_id")),
    )
    op.create_index(op.f("ix_phone_number_inbound_agent_id"), "phone_number", ["inbound_agent_id"])
    op.create_index(
        op.f("ix_phone_number_organization_id_created_at_id"), "phone_number", ["organization_id", "created_at", "id"]
    )
    op.create_index(
        "ix_phone_number_release",
        "phone_number",
        ["release_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending_release'"),
    )
    op.create_index(
        "ix_phone_number_rent",
        "phone_number",
        ["billed_until"],
        unique=False,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "uq_phone_number_in_use",
        "phone_number",
        ["phone_number"],
        unique=True,
        postgresql_where=sa.text("status in ('provisioning', 'active', 'pending_release')"),
    )
    op.create_table(
        "provider_configuration",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("capability", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("settings", postgresql.JSONB(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_provider_configuration_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provider_configuration")),
        sa.UniqueConstraint(
            "organization_id",
            "capability",
            "name",
            name=op.f("uq_provider_configuration_organization_id_capability_name"),
        ),
    )
    op.create_table(
        "user_session",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=True),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_user_session_organization_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_user_session_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_user_session_token_hash")),
    )
    op.create_index(op.f("ix_user_session_user_id"), "user_session", ["user_id"])
    op.create_table(
        "vector_deletion",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("knowledge_base_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_vector_deletion_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vector_deletion")),
    )
    op.create_index(op.f("ix_vector_deletion_due_at"), "vector_deletion", ["due_at"])
    op.create_index(op.f("ix_vector_deletion_organization_id_due_at"), "vector_deletion", ["organization_id", "due_at"])
    op.create_table(
        "vector_maintenance",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_vector_maintenance_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vector_maintenance")),
    )
    op.create_index(op.f("ix_vector_maintenance_due_at"), "vector_maintenance", ["due_at"])
    op.create_table(
        "agent_version",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("settings", postgresql.JSONB(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id", "agent_id"],
            ["agent.organization_id", "agent.id"],
            name=op.f("fk_agent_version_organization_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_agent_version_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_version")),
        sa.UniqueConstraint(
            "organization_id", "agent_id", "version", name=op.f("uq_agent_version_organization_id_agent_id_version")
        ),
    )
    op.create_index(
        op.f("ix_agent_version_organization_id_agent_id_created_at_id"),
        "agent_version",
        ["organization_id", "agent_id", "created_at", "id"],
    )
    op.create_table(
        "automation_run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("trigger_event", sa.Text(), nullable=False),
        sa.Column("event", postgresql.JSONB(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("actions", postgresql.JSONB(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('running', 'completed', 'failed', 'skipped')", name=op.f("ck_automation_run_status")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "automation_id"],
            ["automation.organization_id", "automation.id"],
            name=op.f("fk_automation_run_organization_id_automation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_automation_run_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_run")),
        sa.UniqueConstraint(
            "organization_id",
            "automation_id",
            "event_id",
            name=op.f("uq_automation_run_organization_id_automation_id_event_id"),
        ),
    )
    op.create_index(
        "ix_automation_run_due",
        "automation_run",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at is not null"),
    )
    op.create_index(
        op.f("ix_automation_run_organization_id_automation_id_created_at_id"),
        "automation_run",
        ["organization_id", "automation_id", "created_at", "id"],
    )
    op.create_index(
        "ix_automation_run_over",
        "automation_run",
        ["completed_at"],
        unique=False,
        postgresql_where=sa.text("completed_at is not null"),
    )
    op.create_table(
        "campaign_contact",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("dial_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("called_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cause_depth", sa.Integer(), nullable=False, server_default="0"),
        sa.CheckConstraint(
            (
                "outcome in ('answered', 'voicemail', 'busy', 'no-answer', 'failed', 'invalid_number', "
                "'do_not_call', 'canceled')"
            ),
            name=op.f("ck_campaign_contact_outcome"),
        ),
        sa.CheckConstraint(
            "status in ('pending', 'dialing', 'in_progress', 'completed', 'failed', 'skipped', 'canceled')",
            name=op.f("ck_campaign_contact_status"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "campaign_id"],
            ["campaign.organization_id", "campaign.id"],
            name=op.f("fk_campaign_contact_organization_id_campaign_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_campaign_contact_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign_contact")),
    )
    op.create_index(
        "ix_campaign_contact_in_flight",
        "campaign_contact",
        ["organization_id", "campaign_id"],
        unique=False,
        postgresql_where=sa.text("status in ('dialing', 'in_progress')"),
    )
    op.create_index(
        op.f("ix_campaign_contact_organization_id_campaign_id_created_at_id"),
        "campaign_contact",
        ["organization_id", "campaign_id", "created_at", "id"],
    )
    op.create_index(
        "ix_campaign_contact_pending",
        "campaign_contact",
        ["organization_id", "campaign_id", "dial_at", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "uq_campaign_contact_number",
        "campaign_contact",
        ["campaign_id", "phone_number"],
        unique=True,
        postgresql_where=sa.text("status <> 'skipped'"),
    )
    op.create_table(
        "contact_search",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "id"],
            ["contact.organization_id", "contact.id"],
            name=op.f("fk_contact_search_organization_id_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_contact_search_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contact_search")),
    )
    op.create_table(
        "delivery_attempt",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id", "delivery_id"],
            ["delivery.organization_id", "delivery.id"],
            name=op.f("fk_delivery_attempt_organization_id_delivery_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "delivery_id", "number", name=op.f("pk_delivery_attempt")),
    )
    op.create_table(
        "knowledge_document",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("knowledge_base_id", sa.Uuid(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("file_size", sa.Integer(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("process_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("request_key", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint("status in ('processing', 'ready', 'failed')", name=op.f("ck_knowledge_document_status")),
        sa.ForeignKeyConstraint(
            ["organization_id", "knowledge_base_id"],
            ["knowledge_base.organization_id", "knowledge_base.id"],
            name=op.f("fk_knowledge_document_organization_id_knowledge_base_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_knowledge_document_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_document")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_knowledge_document_organization_id_id")),
        sa.UniqueConstraint(
            "organization_id", "request_key", name=op.f("uq_knowledge_document_organization_id_request_key")
        ),
    )
    op.create_index(
        op.f("ix_knowledge_document_organization_id_knowledge_base_id_created_at_id"),
        "knowledge_document",
        ["organization_id", "knowledge_base_id", "created_at", "id"],
    )
    op.create_index(
        "ix_knowledge_document_processing",
        "knowledge_document",
        ["process_after"],
        unique=False,
        postgresql_where=sa.text("status = 'processing'"),
    )
    op.create_table(
        "oauth_grant",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("membership_id", sa.Uuid(), nullable=True),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("code_challenge", sa.Text(), nullable=True),
        sa.Column("redeemed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_client.id"], name=op.f("fk_oauth_grant_client_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["membership_id"], ["membership.id"], name=op.f("fk_oauth_grant_membership_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_oauth_grant_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_oauth_grant_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_grant")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_oauth_grant_code_hash")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_oauth_grant_organization_id_id")),
    )
    op.create_index(op.f("ix_oauth_grant_client_id"), "oauth_grant", ["client_id"])
    op.create_index(op.f("ix_oauth_grant_expires_at"), "oauth_grant", ["expires_at"])
    op.create_index(op.f("ix_oauth_grant_membership_id"), "oauth_grant", ["membership_id"])
    op.create_index(
        op.f("ix_oauth_grant_organization_id_client_id_user_id"),
        "oauth_grant",
        ["organization_id", "client_id", "user_id"],
    )
    op.create_index(op.f("ix_oauth_grant_user_id"), "oauth_grant", ["user_id"])
    op.create_table(
        "simulation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("lines", postgresql.JSONB(), nullable=False),
        sa.Column("max_turns", sa.Integer(), nullable=False),
        sa.Column("assertions", postgresql.JSONB(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("criteria", postgresql.JSONB(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("duration_seconds", sa.Integer(), nullable=False),
        sa.Column("transcript", postgresql.JSONB(), nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("mode in ('text', 'audio')", name=op.f("ck_simulation_mode")),
        sa.CheckConstraint(
            "status in ('queued', 'running', 'passed', 'failed', 'error')", name=op.f("ck_simulation_status")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "agent_id"],
            ["agent.organization_id", "agent.id"],
            name=op.f("fk_simulation_organization_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_simulation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_simulation")),
    )
    op.create_index(
        "ix_simulation_due", "simulation", ["due_at"], unique=False, postgresql_where=sa.text("due_at is not null")
    )
    op.create_index(
        op.f("ix_simulation_organization_id_agent_id_created_at_id"),
        "simulation",
        ["organization_id", "agent_id", "created_at", "id"],
    )
    op.create_table(
        "sms_conversation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number_id", sa.Uuid(), nullable=False),
        sa.Column("contact_number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("last_message_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reply_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answering_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer_attempts", sa.Integer(), nullable=False),
        sa.CheckConstraint("status in ('open', 'closed')", name=op.f("ck_sms_conversation_status")),
        sa.ForeignKeyConstraint(
            ["organization_id", "phone_number_id"],
            ["phone_number.organization_id", "phone_number.id"],
            name=op.f("fk_sms_conversation_organization_id_phone_number_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_sms_conversation_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_conversation")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_sms_conversation_organization_id_id")),
        sa.UniqueConstraint(
            "organization_id",
            "phone_number_id",
            "contact_number",
            name=op.f("uq_sms_conversation_organization_id_phone_number_id_contact_number"),
        ),
    )
    op.create_index(
        op.f("ix_sms_conversation_organization_id_created_at_id"),
        "sms_conversation",
        ["organization_id", "created_at", "id"],
    )
    op.create_index(
        op.f("ix_sms_conversation_organization_id_last_message_at_id"),
        "sms_conversation",
        ["organization_id", "last_message_at", "id"],
    )
    op.create_index(
        "ix_sms_conversation_reply_due",
        "sms_conversation",
        ["reply_due_at"],
        unique=False,
        postgresql_where=sa.text("reply_due_at is not null"),
    )
    op.create_table(
        "transcript_line",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("timestamp_ms", sa.Integer(), nullable=False),
        sa.Column("ended_ms", sa.Integer(), nullable=False),
        sa.Column("interrupted", sa.Boolean(), nullable=False),
        sa.Column("by_person", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.CheckConstraint("role in ('user', 'agent', 'tool', 'system')", name=op.f("ck_transcript_line_role")),
        sa.ForeignKeyConstraint(
            ["organization_id", "call_id"],
            ["call.organization_id", "call.id"],
            name=op.f("fk_transcript_line_organization_id_call_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_transcript_line_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transcript_line")),
        sa.UniqueConstraint(
            "organization_id", "call_id", "position", name=op.f("uq_transcript_line_organization_id_call_id_position")
        ),
    )
    op.create_table(
        "knowledge_text",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "id"],
            ["knowledge_document.organization_id", "knowledge_document.id"],
            name=op.f("fk_knowledge_text_organization_id_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_knowledge_text_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_text")),
    )
    op.create_table(
        "oauth_token",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("grant_id", sa.Uuid(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("access_hash", sa.LargeBinary(), nullable=False),
        sa.Column("access_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("refresh_hash", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "grant_id"],
            ["oauth_grant.organization_id", "oauth_grant.id"],
            name=op.f("fk_oauth_token_organization_id_grant_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_oauth_token_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_token")),
        sa.UniqueConstraint("access_hash", name=op.f("uq_oauth_token_access_hash")),
        sa.UniqueConstraint("refresh_hash", name=op.f("uq_oauth_token_refresh_hash")),
    )
    op.create_index(op.f("ix_oauth_token_expires_at"), "oauth_token", ["expires_at"])
    op.create_index(op.f("ix_oauth_token_organization_id_grant_id"), "oauth_token", ["organization_id", "grant_id"])
    op.create_table(
        "sms_message",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("from_number", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("media_urls", postgresql.JSONB(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("segments", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Numeric(precision=14, scale=6), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_text_id", sa.Text(), nullable=True),
        sa.Column("watch_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cause_depth", sa.Integer(), nullable=False, server_default="0"),
        sa.CheckConstraint(
            "author in ('contact', 'api', 'agent', 'automation', 'person', 'platform')",
            name=op.f("ck_sms_message_author"),
        ),
        sa.CheckConstraint("direction in ('inbound', 'outbound')", name=op.f("ck_sms_message_direction")),
        sa.CheckConstraint(
            "status in ('queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed', 'received')",
            name=op.f("ck_sms_message_status"),
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "conversation_id"],
            ["sms_conversation.organization_id", "sms_conversation.id"],
            name=op.f("fk_sms_message_organization_id_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_sms_message_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_message")),
    )
    op.create_index(
        op.f("ix_sms_message_organization_id_conversation_id_created_at_id"),
        "sms_message",
        ["organization_id", "conversation_id", "created_at", "id"],
    )
    op.create_index(
        "ix_sms_message_watched",
        "sms_message",
        ["watch_at"],
        unique=False,
        postgresql_where=sa.text("watch_at is not null"),
    )
    op.create_index(
        "uq_sms_message_carrier",
        "sms_message",
        ["organization_id", "carrier", "carrier_text_id"],
        unique=True,
        postgresql_where=sa.text("carrier_text_id is not null"),
    )
    op.create_index(op.f("ix_sms_message_organization_id_created_at"), "sms_message", ["organization_id", "created_at"])
    # Deliveries are updated on each attempt: leave space for updates in place, and vacuum early.
    op.execute("alter table delivery set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)")
    op.execute(CREATE_CONTACT_GRAMS)
    op.execute(
        f"create index ix_contact_search_grams on contact_search using gin ({ROW_GRAMS}) with (fastupdate = off)"
    )
    _protect_tables()
    _count_rows()


def _protect_tables() -> None:
    op.execute("grant usage on schema public to switchboard_tenant, switchboard_system")
    protect_table("account")
    protect_table("agent")
    protect_table("agent_version")
    protect_table("api_key", system="select, update")
    protect_table("audit_entry", tenant="select, insert", system="select, insert")
    protect_table("automation")
    protect_table("automation_run", system="select, delete")
    protect_table("call", system="select, update")
    protect_table("campaign", system="select, update")
    protect_table("campaign_contact")
    protect_table("contact")
    protect_table("contact_search")
    # In the policy: row-level security does not let a query's own condition into the index
    # (docs/decisions/0012-contact-search.md).
    visible = f"organization_id = (select {CURRENT}) and {ROW_GRAMS} @> (select {SEARCHED_GRAMS})"
    op.execute(f"alter policy tenant on contact_search using ({visible})")
    protect_table("delivery", tenant="select, insert, update", system="select, update, delete")
    protect_table("delivery_attempt", tenant="select", system="select, insert")
    protect_table("do_not_call_entry")
    protect_table("event", tenant="select, insert", system="select, update, delete")
    op.execute("grant update (trigger_due_at) on event to switchboard_tenant")
    protect_table("event_target", system="select, update")
    protect_table("event_trigger")
    protect_table("idempotency_record", system="select, delete")
    protect_table("integration")
    protect_table("invitation", system="select, update, delete")
    protect_table("knowledge_base")
    protect_table("knowledge_document", system="select")
    protect_table("knowledge_text")
    protect_table("ledger_entry", tenant="select, insert")
    protect_table("ledger_hold")
    protect_table("membership", system="select, insert, update")
    protect_table("oauth_client", tenant="", system="select, insert, update, delete")
    # Applications belong to no organization; every organization may see their names.
    op.execute("grant select (id, client_id, name) on oauth_client to switchboard_tenant")
    op.execute("create policy tenant on oauth_client for select to switchboard_tenant using (true)")
    protect_table("oauth_grant", tenant="select", system="select, insert, update, delete")
    op.execute("grant update (revoked_at) on oauth_grant to switchboard_tenant")
    protect_table("oauth_token", tenant="select", system="select, insert, update, delete")
    protect_table("organization", column="id", tenant="select", system="select, insert, update, delete")
    protect_table("phone_number", system="select")
    protect_table("provider_configuration")
    protect_table("simulation", system="select, update")
    protect_table("sms_conversation", system="select")
    protect_table("sms_message", system="select")
    protect_table("transcript_line")
    protect_table("user_account", tenant="", system="select, insert, update, delete")
    # An organization sees the e-mail addresses of its members and of nobody else: the subquery runs under the policy of
    # membership.
    members = "exists (select from membership where membership.user_id = user_account.id)"
    op.execute("grant select (id, email) on user_account to switchboard_tenant")
    op.execute(f"create policy tenant on user_account for select to switchboard_tenant using ({members})")
    protect_table("user_session", tenant="", system="select, insert, update, delete")
    protect_table("vector_deletion", system="select")
    protect_table("vector_maintenance", system="select")


def _count_rows() -> None:
    """Count the rows of each list: by the column that its lists lie under, and by the columns that they are filtered
    by.
    """
    create_row_counter("agent", facets=("agent_type",))
    create_row_counter("agent_version", "agent_id")
    create_row_counter("automation")
    create_row_counter("automation_run", "automation_id")
    create_row_counter("call", facets=("agent_id", "direction", "status"), changing="status")
    create_row_counter("campaign")
    create_row_counter("campaign_contact", "campaign_id")
    create_row_counter("contact")
    create_row_counter("delivery", "target_id", ("target_kind",))
    create_row_counter("do_not_call_entry")
    create_row_counter("knowledge_base")
    create_row_counter("knowledge_document", "knowledge_base_id")
    create_row_counter("phone_number", facets=("status",), changing="status")
    create_row_counter("simulation", "agent_id")
    create_row_counter("sms_conversation")
    create_row_counter("sms_message", "conversation_id")
    protect_table("row_count", tenant="select", system="select, insert, delete")
    op.execute("create policy owner on row_count to current_user using (true) with check (true)")
