"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "oauth_client",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
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
        sa.Column("policy", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organization")),
        sa.UniqueConstraint("slug", name=op.f("uq_organization_slug")),
    )
    op.create_table(
        "user_account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("is_superadmin", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_account")),
        sa.UniqueConstraint("email", name=op.f("uq_user_account_email")),
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
        sa.Column("webhook_secret", sa.Text(), nullable=True),
        sa.Column("timezone", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status in ('active', 'paused')", name=op.f("ck_agent_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_agent_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_agent_organization_id_id")),
    )
    op.create_index(
        op.f("ix_agent_organization_id_created_at_id"), "agent", ["organization_id", "created_at", "id"], unique=False
    )
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
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_api_key_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_key_key_hash")),
    )
    op.create_index(
        op.f("ix_api_key_organization_id_created_at"), "api_key", ["organization_id", "created_at"], unique=False
    )
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
    op.create_index(
        op.f("ix_audit_entry_organization_id_created_at"),
        "audit_entry",
        ["organization_id", "created_at"],
        unique=False,
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
        sa.Column("cost_parts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("call_summary", sa.Text(), nullable=True),
        sa.Column("call_successful", sa.Boolean(), nullable=True),
        sa.Column("user_sentiment", sa.Text(), nullable=False),
        sa.Column("extracted_data", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("call_metadata", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("ended_reason", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("latencies", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("served_by", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("transferred_to", sa.Text(), nullable=True),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_call_id", sa.Text(), nullable=True),
        sa.Column("carrier_recording_id", sa.Text(), nullable=True),
        sa.Column("has_recording", sa.Boolean(), nullable=False),
        sa.Column("voicemail", sa.Boolean(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("dialing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("watch_at", sa.DateTime(timezone=True), nullable=True),
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
    op.create_index(op.f("ix_call_analysis_due_at"), "call", ["analysis_due_at"], unique=False)
    op.create_index(
        "ix_call_open", "call", ["organization_id"], unique=False, postgresql_where=sa.text("ended_at is null")
    )
    op.create_index(
        op.f("ix_call_organization_id_agent_id_created_at"),
        "call",
        ["organization_id", "agent_id", "created_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_call_organization_id_created_at_id"), "call", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_index(
        op.f("ix_call_organization_id_status_created_at"),
        "call",
        ["organization_id", "status", "created_at"],
        unique=False,
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
        "event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("watched_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_event_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(
        op.f("ix_event_organization_id_created_at"), "event", ["organization_id", "created_at"], unique=False
    )
    op.create_index(
        "ix_event_unwatched", "event", ["created_at"], unique=False, postgresql_where=sa.text("watched_at is null")
    )
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
    op.create_index(op.f("ix_idempotency_record_created_at"), "idempotency_record", ["created_at"], unique=False)
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
    op.create_index(op.f("ix_membership_user_id"), "membership", ["user_id"], unique=False)
    op.create_table(
        "phone_number",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("friendly_name", sa.Text(), nullable=False),
        sa.Column("inbound_agent_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("schedule", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("sms_schedule", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("forward_number", sa.Text(), nullable=True),
        sa.Column("forward_webhook_url", sa.Text(), nullable=True),
        sa.Column("forward_webhook_secret", sa.Text(), nullable=True),
        sa.Column("sms_active", sa.Boolean(), nullable=False),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_number_id", sa.Text(), nullable=True),
        sa.Column("monthly_cost", sa.Float(), nullable=False),
        sa.Column("release_at", sa.DateTime(timezone=True), nullable=True),
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
    op.create_index(op.f("ix_phone_number_inbound_agent_id"), "phone_number", ["inbound_agent_id"], unique=False)
    op.create_index(
        op.f("ix_phone_number_organization_id_created_at_id"),
        "phone_number",
        ["organization_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_phone_number_release",
        "phone_number",
        ["release_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending_release'"),
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
        sa.Column("settings", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
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
        "agent_version",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("settings", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
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

    protect("organization", column="id", tenant="select", system="select, insert, update, delete")
    protect("api_key", system="select, insert, update, delete")
    protect("membership", system="select, insert, update, delete")
    protect("audit_entry", tenant="select, insert", system="select, insert")
    protect("user_account", tenant="", system="select, insert, update, delete")
    protect("oauth_client", tenant="", system="select, insert, update, delete")
    protect("provider_configuration", system="select, insert, update, delete")
    protect("agent")
    protect("agent_version")
    protect("phone_number", system="select")
    protect("call", system="select, update")
    protect("transcript_line")
    protect("event", tenant="select, insert", system="select, update")
    protect("idempotency_record", system="select, delete")
    op.execute("grant usage on schema public to switchboard_tenant, switchboard_system")


def downgrade() -> None:
    for table in (
        "transcript_line", "agent_version", "provider_configuration", "phone_number", "membership", "idempotency_record", "event", "call",
        "audit_entry", "api_key", "agent", "user_account", "organization", "oauth_client",
    ):  # fmt: skip
        op.drop_table(table)
