"""The whole schema of the first release: tables, privileges and row-level security, functions, and row counters.

It stays as it is from then on: each later change of a table is a migration of its own.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from switchboard.migrations.operations import (
    CURRENT,
    MONEY,
    TIMESTAMP,
    build_choice,
    build_due_index,
    build_index,
    build_reference,
    create_history_table,
    create_limit_counter,
    create_record_table,
    create_row_counter,
    create_tenant_table,
    delete_with_history,
    delete_with_organization,
    optional,
    protect_table,
    required,
)

revision = "0001_schema"
down_revision = None
oldest_program = "0001_schema"

# The last ten bits of the id, as `get_bucket` of the program.
CREATE_BUCKET = """
create function bucket(uuid) returns integer language sql immutable parallel safe
return ('x' || right($1::text, 3))::bit(12)::integer & 1023
"""
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
# The words of a text as hashes that differ from organization to organization: in the index one organization's search
# touches no other's rows. An encrypted text has no words here, and `to_tsvector` raises an error above a megabyte.
CREATE_TRANSCRIPT_WORDS = """
create function transcript_words(organization uuid, content text) returns bigint[]
language sql immutable parallel safe
return case when content like 'sbt1.%' then '{}' else array(
    select hashtextextended(organization::text || word, 0)
    from unnest(tsvector_to_array(to_tsvector('simple', left(content, 100000)))) as word
) end
"""
COLLECT_TRANSCRIPT_WORDS = """
create function collect_transcript_words(organization uuid, call uuid) returns bigint[] language sql stable
return array(
    select distinct word from transcript_line line, unnest(transcript_words(organization, line.content)) as word
    where line.organization_id = organization and line.call_id = call
)
"""
# What changes a text that was written, an erasure or an encryption, changes the words of its call.
CREATE_TRANSCRIPT_TRIGGER = """
create function index_changed_transcripts() returns trigger language plpgsql set search_path from current as $$ begin
    update transcript_search search set words = collect_transcript_words(search.organization_id, search.call_id)
    from (select distinct organization_id, call_id from changed) lines
    where search.organization_id = lines.organization_id and search.call_id = lines.call_id;
    return null;
end $$
"""
SEARCHED_WORDS = f"transcript_words({CURRENT}, coalesce(current_setting('app.transcript_search', true), ''))"
# Days for which an organization keeps its audit log, none under a legal hold.
AUDIT_DAYS = f"""
select (policy #>> '{{retention,audit}}')::int from organization
where id = (select {CURRENT}) and not (policy #>> '{{retention,legal_hold}}')::boolean
"""  # noqa: S608

# Begins each transaction that may write for an organization, whose role sees no other one. A procedure costs half as
# much as a function in a `select`. The state is one of the program's own.
CREATE_REQUIRE_WRITABLE = """
create procedure require_writable_organization() language plpgsql as $$ begin
    if exists (select from organization where frozen_at is not null) then
        raise exception 'the organization is being moved' using errcode = 'SW001';
    end if;
end $$
"""
# The lowest id of a month, in UTC: its first 48 bits are the milliseconds since 1970 (RFC 9562, section 5.7).
CREATE_LOWEST_ID = """
create function lowest_id(month date) returns uuid language sql stable
return (
    lpad(to_hex((extract(epoch from month::timestamp at time zone 'UTC') * 1000)::bigint), 12, '0') || repeat('0', 20)
)::uuid
"""
# Rows that came before their month stay in the rest, and that month is not created. Deliveries are updated on each
# attempt: their pages have space for updates in place.
CREATE_ADD_MONTH = """
create function add_month(parent name, month date) returns void
language plpgsql security definer set search_path from current set lock_timeout = '2s' as $$
declare
    part name := parent || to_char(month, '"_"YYYY_MM');
    rest name := parent || '_rest';
    key name := (
        select attname from pg_partitioned_table join pg_attribute on attrelid = partrelid and attnum = partattrs[0]
        where partrelid = parent::regclass
    );
    low uuid := lowest_id(month);
    high uuid := lowest_id((month + interval '1 month')::date);
    is_late boolean;
begin
    if to_regclass(part) is not null then return; end if;
    execute format('select exists (select from %I where %I between %L and %L)', rest, key, low, high) into is_late;
    if is_late then return; end if;
    execute format('create table %I (like %I including all)', part, parent);
    execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0.02, fillfactor = %s)',
        part, case when parent = 'delivery' then 80 else 100 end);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part, low, high);
end $$
"""
# This month and the next two of a table. A month is dropped a month after its end, once it has no rows: `reltuples`
# tells without reading those that have some. Where somebody holds a lock for longer, as a backup does, the next run
# goes on.
CREATE_KEEP_MONTHS = """
create function keep_months(parent name) returns void
language plpgsql security definer set search_path from current set lock_timeout = '2s' as $$
declare
    this date := date_trunc('month', now() at time zone 'UTC');
    part name;
    has_rows boolean;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('keep_months ' || parent, 0)) then return; end if;
    for ahead in 0..2 loop
        perform add_month(parent, (this + make_interval(months => ahead))::date);
    end loop;
    for part in
        select child.relname from pg_inherits join pg_class child on child.oid = inhrelid
        where inhparent = parent::regclass and child.reltuples <= 0
            and child.relname < parent || to_char(this - interval '1 month', '"_"YYYY_MM')
    loop
        execute format('select exists (select from %I)', part) into has_rows;
        continue when has_rows;
        execute format('alter table %I detach partition %I', parent, part);
        execute format('select exists (select from %I)', part) into has_rows;
        if has_rows then raise lock_not_available; end if;
        execute format('drop table %I', part);
    end loop;
exception when lock_not_available or check_violation then null;
end $$
"""
CREATE_REFER = """
create function refer_to_{table}() returns trigger language plpgsql set search_path from current as $$ begin
    insert into carrier_reference (organization_id, kind, carrier_id, carrier, subject_id)
    values (new.organization_id, '{kind}', new.{column}, new.carrier, new.id) on conflict do nothing;
    if not found and not exists (
        select from carrier_reference where organization_id = new.organization_id and kind = '{kind}'
            and carrier_id = new.{column} and carrier = new.carrier and subject_id = new.id
    ) then
        raise unique_violation using message = 'the carrier''s id is that of another {table}';
    end if;
    return null;
end $$
"""
CREATE_FORGET = """
create function forget_{table}() returns trigger language plpgsql set search_path from current as $$ begin
    delete from carrier_reference reference using deleted
    where reference.organization_id = deleted.organization_id and kind = '{kind}'
        and carrier_id = deleted.{column} and reference.carrier = deleted.carrier;
    return null;
end $$
"""
RUNNING = (
    "({row}.ended_at is null and {row}.carrier <> 'chat' and {row}.status in ('queued', 'ringing', 'in-progress'))"
)
COUNTED = "coalesce({row}.direction = 'outbound' or {row}.transferred_to not like 'client:%', false)"
"""Conditions that a call is under way, and that it counts as an outbound one."""
LASTING = "'infinity'::timestamptz"
# The counts that a row adds: what they are of, their moment, name, number, and amount; none without the first two.
# `LimitCounter` has the names.
COUNTS_OF_CALL = (
    ("{row}.organization_id", LASTING, "running", RUNNING, "0"),
    ("{row}.organization_id", "date_trunc('minute', {row}.created_at)", "begun", COUNTED, "0"),
    *(
        (f"case when {COUNTED} and {{row}}.started_at is not null then {{row}}.organization_id end", *counts)
        for counts in (
            (f"case when {{row}}.ended_at is null then {LASTING} end", "talking", "1", "0"),
            ("date_trunc('minute', {row}.started_at)", "talking", "1", "extract(epoch from {row}.started_at)"),
            ("date_trunc('minute', {row}.ended_at)", "talking", "-1", "-extract(epoch from {row}.ended_at)"),
        )
    ),
    (
        "{row}.widget_id",
        f"coalesce(date_trunc('hour', {{row}}.ended_at, 'UTC'), {LASTING})",
        "conversations",
        "1",
        "{row}.cost_total",
    ),
    (
        "case when {row}.ended_at is null and {row}.carrier <> 'chat' then {row}.widget_id end",
        LASTING,
        "talking",
        "1",
        "extract(epoch from coalesce({row}.started_at, {row}.created_at))",
    ),
)
COUNTS_OF_MESSAGE = (
    (
        "case {row}.direction when 'outbound' then {row}.organization_id end",
        "date_trunc('minute', {row}.created_at)",
        "texts",
        "1",
        "0",
    ),
)
COUNTS_OF_ENTRY = (
    (
        "case when {row}.kind <> 'credit' then {row}.organization_id end",
        "date_trunc('minute', {row}.created_at)",
        "spent",
        "1",
        "-{row}.amount",
    ),
)
COUNTS_OF_HOLD = (("{row}.organization_id", LASTING, "held", "1", "{row}.amount"),)
# A session of a widget counts itself until it has a call.
COUNTS_OF_SESSION = tuple(
    (
        "case when {row}.call_id is null then {row}.widget_id end",
        f"date_trunc('{precision}', {{row}}.created_at, 'UTC')",
        name,
        "1",
        "0",
    )
    for precision, name in (("second", "unannounced"), ("hour", "conversations"))
)


def upgrade() -> None:
    op.execute("grant usage on schema public to switchboard_tenant, switchboard_system, switchboard_search")
    op.execute(CREATE_BUCKET)
    op.execute(CREATE_CONTACT_GRAMS)
    op.execute(CREATE_TRANSCRIPT_WORDS)
    _create_organizations_and_users()
    _create_applications()
    _create_billing()
    _create_agents()
    _create_knowledge_bases()
    _create_calls()
    _create_text_messages()
    _create_contacts_and_campaigns()
    _create_events_and_automations()
    _create_appointments()
    _create_privacy()
    _create_widgets()
    _create_requests()
    _create_processes()
    _keep_carrier_references()
    _let_erasure_and_retention_change_records()
    _let_tenants_see_and_change_columns()
    _let_system_read_columns()
    _let_searches_use_indexes()
    _let_imports_insert_users()
    for table in (
        "audit_entry",
        "carrier_reference",
        "delivery",
        "event",
        "ledger_entry",
        "transcript_line",
        "transcript_search",
    ):
        delete_with_organization(table)
    _count_rows()
    _count_for_limits()
    _tune_storage()
    _keep_months()


def _create_organizations_and_users() -> None:
    op.create_table(
        "organization",
        required("id", sa.Uuid, primary_key=True),
        required("name", sa.Text),
        optional("slug", sa.Text, unique=True),
        required("timezone", sa.Text),
        required("policy", JSONB),
        optional("narrowed_destinations", JSONB),
        optional("setup_dismissed_at", TIMESTAMP),
        optional("suspended_at", TIMESTAMP),
        optional("suspension_reason", sa.String),
        required("allows_support", sa.Boolean),
        optional("language", sa.String),
        optional("logo_digest", sa.String),
        optional("moving_since", TIMESTAMP),
        optional("frozen_at", TIMESTAMP),
        required("created_at", TIMESTAMP),
        build_index("ix_organization_moving", "id", predicate="moving_since is not null"),
    )
    protect_table("organization", column="id", tenant="select", system="select, insert, update, delete")
    op.execute(CREATE_REQUIRE_WRITABLE)
    op.create_table(
        "organization_logo",
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
        required("media_type", sa.String),
        required("content", sa.LargeBinary),
    )
    protect_table("organization_logo")
    create_tenant_table(
        "organization_key",
        required("purpose", sa.Text),
        required("wrapped", sa.Text),
        sa.Index(None, "organization_id", "purpose"),
        system="select",
    )
    op.create_table(
        "user_account",
        required("id", sa.Uuid, primary_key=True),
        required("email", sa.Text, unique=True),
        optional("email_verified_at", TIMESTAMP),
        required("password_hash", sa.Text),
        required("is_superadmin", sa.Boolean),
        optional("language", sa.String),
        required("created_at", TIMESTAMP),
    )
    protect_table("user_account", tenant="", system="select, insert, update, delete")
    op.create_table(
        "user_session",
        required("id", sa.Uuid, primary_key=True),
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("token_hash", sa.LargeBinary, unique=True),
        optional("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="SET NULL")),
        required("address", sa.Text),
        required("user_agent", sa.Text),
        optional("notice", sa.Text),
        required("notice_tone", sa.Text),
        required("created_at", TIMESTAMP),
        required("last_seen_at", TIMESTAMP),
    )
    protect_table("user_session", tenant="", system="select, insert, update, delete")
    create_tenant_table(
        "membership",
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("role", sa.Text),
        build_choice("role", "owner, builder, agent, viewer"),
        sa.UniqueConstraint("organization_id", "user_id"),
        system="select, insert, update",
    )
    create_tenant_table(
        "invitation",
        required("email", sa.Text),
        required("role", sa.Text),
        required("token_hash", sa.LargeBinary, unique=True),
        required("is_link_shown", sa.Boolean),
        required("expires_at", TIMESTAMP),
        build_choice("role", "owner, builder, agent, viewer"),
        sa.UniqueConstraint("organization_id", "email"),
        system="select, update, delete",
    )
    op.create_table(
        "authenticator_app",
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
        required("sealed_secret", sa.String),
        required("last_step", sa.BigInteger),
        required("created_at", TIMESTAMP),
    )
    protect_table("authenticator_app", tenant="", system="select, insert, update, delete")
    op.create_table(
        "recovery_code",
        required("code_hash", sa.LargeBinary, primary_key=True),
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
    )
    protect_table("recovery_code", tenant="", system="select, insert, delete")
    op.create_table(
        "passkey",
        required("id", sa.Uuid, primary_key=True),
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("name", sa.String),
        required("credential_id", sa.LargeBinary, unique=True),
        required("public_key", sa.LargeBinary),
        required("sign_count", sa.BigInteger),
        required("created_at", TIMESTAMP),
        optional("last_used_at", TIMESTAMP),
    )
    protect_table("passkey", tenant="", system="select, insert, update, delete")
    op.create_table(
        "used_passkey_challenge",
        required("challenge_hash", sa.LargeBinary, primary_key=True),
        required("expires_at", TIMESTAMP, index=True),
    )
    protect_table("used_passkey_challenge", tenant="", system="select, insert, delete")
    create_tenant_table(
        "api_key",
        required("name", sa.Text),
        required("key_hash", sa.LargeBinary, unique=True),
        required("hint", sa.Text),
        required("scopes", sa.ARRAY(sa.Text)),
        optional("last_used_at", TIMESTAMP),
        optional("expires_at", TIMESTAMP),
        optional("revoked_at", TIMESTAMP),
        sa.Index(None, "organization_id", "created_at"),
        system="select, update",
    )
    create_tenant_table(
        "support_session",
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("user_email", sa.String),
        optional("browser_session_id", sa.Uuid, sa.ForeignKey("user_session.id", ondelete="SET NULL"), index=True),
        required("reason", sa.String),
        required("expires_at", TIMESTAMP),
        optional("ended_at", TIMESTAMP),
        sa.Index(None, "organization_id", "created_at"),
        tenant="select",
        system="select, insert, update",
    )
    create_history_table(
        "audit_entry",
        required("actor", sa.Text),
        required("action", sa.Text),
        required("subject", sa.Text),
        sa.Index(None, "organization_id", "created_at"),
        tenant="select, insert, delete",
        system="select, insert",
    )
    op.create_table(
        "password_request",
        required("id", sa.Uuid, primary_key=True),
        required("user_id", sa.Uuid),
        required("created_at", TIMESTAMP),
        required("due_at", TIMESTAMP),
        sa.Index("ix_password_request_due", sa.text("bucket(user_id)"), "due_at"),
    )
    protect_table("password_request", tenant="", system="select, insert, update, delete")
    create_tenant_table(
        "saved_view",
        required("page", sa.Text),
        required("name", sa.Text),
        required("query", sa.Text),
        sa.UniqueConstraint("organization_id", "page", "name"),
    )


def _create_applications() -> None:
    op.create_table(
        "oauth_client",
        required("id", sa.Uuid, primary_key=True),
        required("client_id", sa.Text, unique=True),
        optional("secret_hash", sa.LargeBinary),
        required("name", sa.Text),
        required("redirect_uris", sa.ARRAY(sa.Text)),
        required("created_at", TIMESTAMP),
    )
    protect_table("oauth_client", tenant="", system="select, insert, update, delete")
    create_tenant_table(
        "oauth_grant",
        required("client_id", sa.Uuid, sa.ForeignKey("oauth_client.id", ondelete="CASCADE"), index=True),
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("membership_id", sa.Uuid, sa.ForeignKey("membership.id", ondelete="CASCADE"), index=True),
        required("scopes", sa.ARRAY(sa.Text)),
        required("redirect_uri", sa.Text),
        required("code_hash", sa.LargeBinary, unique=True),
        optional("code_challenge", sa.Text),
        optional("redeemed_at", TIMESTAMP),
        optional("last_used_at", TIMESTAMP),
        optional("revoked_at", TIMESTAMP),
        required("expires_at", TIMESTAMP, index=True),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "client_id", "user_id"),
        tenant="select",
        system="select, insert, update, delete",
    )
    create_tenant_table(
        "oauth_token",
        required("grant_id", sa.Uuid),
        required("scopes", sa.ARRAY(sa.Text)),
        required("access_hash", sa.LargeBinary, unique=True),
        required("access_expires_at", TIMESTAMP),
        required("refresh_hash", sa.LargeBinary, unique=True),
        optional("used_at", TIMESTAMP),
        required("expires_at", TIMESTAMP, index=True),
        build_reference("grant_id", "oauth_grant"),
        sa.Index(None, "organization_id", "grant_id"),
        tenant="select",
        system="select, insert, update, delete",
    )


def _create_billing() -> None:
    create_tenant_table(
        "account",
        required("balance", MONEY),
        required("updated_at", TIMESTAMP),
    )
    create_record_table(
        "ledger_entry",
        required("kind", sa.Text),
        required("amount", MONEY),
        optional("reference", sa.Uuid),
        required("note", sa.Text),
        build_choice("kind", "call, analysis, text, number, embedding, simulation, credit"),
        sa.Index(None, "organization_id", "created_at"),
        build_index(
            "uq_ledger_entry_reference",
            "organization_id, kind, reference",
            predicate="reference is not null",
            unique=True,
        ),
        tenant="select, insert",
    )
    create_tenant_table("ledger_hold", required("amount", MONEY), sa.Index(None, "organization_id"))
    op.create_table(
        "outbound_pause",
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
        required("limit_name", sa.String),
        required("limit_value", sa.Float),
        required("paused_at", TIMESTAMP),
        required("ends_at", TIMESTAMP),
    )
    protect_table("outbound_pause", tenant="select, insert, update")


def _create_agents() -> None:
    create_tenant_table(
        "provider_configuration",
        required("capability", sa.Text),
        required("name", sa.Text),
        required("position", sa.Integer),
        required("process", sa.Text),
        required("settings", JSONB),
        required("secrets", sa.Text),
        required("updated_at", TIMESTAMP),
        optional("checked_at", TIMESTAMP),
        optional("check_failed_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "capability", "name"),
    )
    create_tenant_table("integration", optional("partner_api_key", sa.Text), required("updated_at", TIMESTAMP))
    create_tenant_table(
        "agent",
        required("name", sa.Text),
        required("agent_type", sa.Text),
        required("status", sa.Text),
        required("version", sa.Integer),
        required("settings", JSONB),
        optional("timezone", sa.Text),
        required("required_simulations", JSONB),
        required("updated_at", TIMESTAMP),
        build_choice("status", "active, paused"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "agent_version",
        required("agent_id", sa.Uuid),
        required("version", sa.Integer),
        required("settings", JSONB),
        optional("made_by", sa.Text),
        build_reference("agent_id", "agent"),
        sa.UniqueConstraint("organization_id", "agent_id", "version"),
        sa.Index(None, "organization_id", "agent_id", "created_at", "id"),
    )
    create_tenant_table(
        "agent_draft",
        required("agent_id", sa.Uuid),
        required("revision", sa.Uuid),
        required("base_version", sa.Integer),
        required("changes", JSONB),
        optional("made_by", sa.Text),
        required("updated_at", TIMESTAMP),
        build_reference("agent_id", "agent"),
        sa.UniqueConstraint("organization_id", "agent_id"),
    )
    create_tenant_table(
        "simulation",
        required("agent_id", sa.Uuid),
        required("name", sa.Text),
        required("mode", sa.Text),
        required("persona", sa.Text),
        required("goal", sa.Text),
        required("lines", JSONB),
        required("max_turns", sa.Integer),
        required("assertions", JSONB),
        required("status", sa.Text),
        optional("score", sa.Float),
        required("criteria", JSONB),
        required("turns", sa.Integer),
        required("duration_seconds", sa.Integer),
        required("transcript", JSONB),
        optional("ended_by", sa.Text),
        optional("call_id", sa.Uuid),
        optional("draft_revision", sa.Uuid),
        optional("error_message", sa.Text),
        optional("due_at", TIMESTAMP),
        required("attempts", sa.Integer),
        optional("started_at", TIMESTAMP),
        optional("completed_at", TIMESTAMP),
        build_choice("status", "queued, running, passed, failed, error"),
        build_choice("mode", "text, audio"),
        build_reference("agent_id", "agent"),
        build_due_index("ix_simulation_due", "due_at"),
        sa.Index(None, "organization_id", "agent_id", "created_at", "id"),
        system="select, update",
    )


def _create_knowledge_bases() -> None:
    create_tenant_table(
        "knowledge_base",
        required("name", sa.Text),
        required("description", sa.Text),
        optional("embedding_provider", sa.Text),
        optional("embedding_model", sa.Text),
        optional("embedding_dimension", sa.Integer),
        required("updated_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "knowledge_document",
        required("knowledge_base_id", sa.Uuid),
        required("filename", sa.Text),
        required("content_type", sa.Text),
        required("file_size", sa.Integer),
        required("chunk_count", sa.Integer),
        required("status", sa.Text),
        optional("error_message", sa.Text),
        optional("process_after", TIMESTAMP),
        required("attempts", sa.Integer),
        optional("request_key", sa.LargeBinary),
        build_choice("status", "processing, ready, failed"),
        build_reference("knowledge_base_id", "knowledge_base"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.UniqueConstraint("organization_id", "request_key"),
        sa.Index(None, "organization_id", "knowledge_base_id", "created_at", "id"),
        build_due_index("ix_knowledge_document_processing", "process_after", predicate="status = 'processing'"),
        system="select",
    )
    create_tenant_table("knowledge_text", required("content", sa.Text), build_reference("id", "knowledge_document"))
    create_tenant_table(
        "vector_deletion",
        required("knowledge_base_id", sa.Uuid),
        optional("document_id", sa.Uuid),
        optional("model", sa.Text),
        required("due_at", TIMESTAMP),
        sa.Index(None, "organization_id", "due_at"),
        build_due_index("ix_vector_deletion_due", "due_at"),
        system="select",
    )
    create_tenant_table(
        "vector_maintenance",
        required("due_at", TIMESTAMP),
        build_due_index("ix_vector_maintenance_due", "due_at"),
        system="select",
    )


def _create_calls() -> None:
    create_tenant_table(
        "phone_number",
        required("phone_number", sa.Text),
        required("friendly_name", sa.Text),
        optional("inbound_agent_id", sa.Uuid, index=True),
        required("status", sa.Text),
        optional("schedule", JSONB),
        optional("sms_schedule", JSONB),
        optional("forward_number", sa.Text),
        optional("forward_webhook_url", sa.Text),
        optional("forward_webhook_secret", sa.Text),
        required("sms_active", sa.Boolean),
        required("carrier", sa.Text),
        optional("carrier_number_id", sa.Text),
        optional("carrier_address", sa.String),
        optional("carrier_requirements", sa.String),
        required("monthly_cost", sa.Float),
        optional("release_at", TIMESTAMP),
        optional("billed_until", TIMESTAMP),
        build_choice("status", "provisioning, active, pending_release, released, failed"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
        build_due_index("ix_phone_number_provisioning", "created_at", predicate="status = 'provisioning'"),
        build_due_index("ix_phone_number_release", "release_at", predicate="status = 'pending_release'"),
        build_due_index("ix_phone_number_rent", "billed_until", predicate="status = 'active'"),
        build_index(
            "uq_phone_number_in_use",
            "phone_number",
            predicate="status in ('provisioning', 'active', 'pending_release')",
            unique=True,
        ),
        system="select",
    )
    create_tenant_table(
        "call",
        optional("agent_id", sa.Uuid),
        optional("agent_version", sa.Integer),
        optional("phone_number_id", sa.Uuid),
        optional("widget_id", sa.Uuid),
        required("direction", sa.Text),
        required("status", sa.Text),
        required("from_number", sa.Text),
        required("to_number", sa.Text),
        required("duration_seconds", sa.Integer),
        required("cost_total", MONEY),
        required("cost_parts", JSONB),
        required("agent_costs", JSONB),
        required("variables", JSONB),
        required("parts", JSONB),
        required("handoffs", JSONB),
        required("interventions", JSONB),
        optional("call_summary", sa.Text),
        optional("call_successful", sa.Boolean),
        required("user_sentiment", sa.Text),
        required("extracted_data", JSONB),
        required("call_metadata", JSONB),
        optional("prompt_variables", JSONB),
        optional("ended_reason", sa.Text),
        optional("error_message", sa.Text),
        required("latencies", JSONB),
        required("served_by", JSONB),
        required("provider_failures", JSONB),
        optional("answered_by", sa.Text),
        optional("quality", JSONB),
        optional("transferred_to", sa.Text),
        optional("transfer_target", sa.Text),
        optional("consent", JSONB),
        optional("taken_over_by", sa.Text),
        optional("taken_over_at", TIMESTAMP),
        required("carrier", sa.Text),
        optional("carrier_call_id", sa.Text),
        optional("carrier_recording_id", sa.Text),
        required("has_recording", sa.Boolean),
        required("recording_format", sa.Text),
        optional("recording_error", sa.Text),
        optional("recording_due_at", TIMESTAMP),
        required("has_transcript", sa.Boolean),
        required("voicemail", sa.Boolean),
        optional("voicemail_policy", JSONB),
        optional("holder", sa.Text),
        optional("dialing_at", TIMESTAMP),
        optional("watch_at", TIMESTAMP),
        required("cause_depth", sa.Integer),
        optional("analysis_due_at", TIMESTAMP),
        required("analysis_attempts", sa.Integer),
        optional("started_at", TIMESTAMP),
        optional("ended_at", TIMESTAMP),
        build_choice("status", "queued, ringing, in-progress, completed, busy, no-answer, failed, canceled"),
        build_choice("direction", "inbound, outbound"),
        sa.UniqueConstraint("organization_id", "id"),
        build_index("ix_call_open", "organization_id", predicate="ended_at is null"),
        sa.Index(None, "organization_id", "agent_id", "created_at"),
        sa.Index(None, "organization_id", "from_number", "created_at"),
        sa.Index(None, "organization_id", "status", "created_at"),
        sa.Index(None, "organization_id", "to_number", "created_at"),
        build_due_index("ix_call_watched", "watch_at"),
        build_index("ix_call_held", "holder", predicate="holder is not null"),
        build_due_index("ix_call_analysis_due", "analysis_due_at"),
        build_due_index("ix_call_recording_due", "recording_due_at"),
        build_index(
            "ix_call_recorded",
            "organization_id, created_at",
            predicate="has_recording or carrier_recording_id is not null",
        ),
        build_index("ix_call_transcribed", "organization_id, created_at", predicate="has_transcript"),
        sa.Index(
            "ix_call_filtered",
            "organization_id",
            "created_at",
            "id",
            postgresql_include=[
                "direction",
                "status",
                "agent_id",
                "ended_reason",
                "user_sentiment",
                "call_successful",
                "duration_seconds",
                "from_number",
                "to_number",
            ],
        ),
        system="select, update",
    )
    create_history_table(
        "transcript_line",
        required("organization_id", sa.Uuid, primary_key=True),
        required("call_id", sa.Uuid, primary_key=True),
        required("position", sa.Integer, primary_key=True),
        required("role", sa.Text),
        required("content", sa.Text),
        required("timestamp_ms", sa.Integer),
        required("ended_ms", sa.Integer),
        required("interrupted", sa.Boolean),
        required("by_person", sa.Boolean),
        required("backchannel", sa.Boolean),
        required("pauses", JSONB),
        optional("person", sa.Text),
        optional("agent_id", sa.Uuid),
        required("unfinished", sa.Boolean),
        build_choice("role", "user, agent, tool, system"),
        by="call_id",
    )
    create_history_table(
        "transcript_search",
        required("organization_id", sa.Uuid, primary_key=True),
        required("call_id", sa.Uuid, primary_key=True),
        required("words", sa.ARRAY(sa.BigInteger)),
        sa.Index(None, "words", postgresql_using="gin"),
        by="call_id",
    )
    op.execute(COLLECT_TRANSCRIPT_WORDS)
    op.execute(CREATE_TRANSCRIPT_TRIGGER)
    op.execute(
        "create trigger index_changed_transcripts after update on transcript_line referencing new table as changed "
        "for each statement execute function index_changed_transcripts()"
    )
    create_tenant_table(
        "call_queue_entry",
        required("call_id", sa.Uuid),
        required("number", sa.Text),
        required("reason", sa.Text),
        required("status", sa.Text),
        optional("handled_by", sa.Text),
        optional("ended_at", TIMESTAMP),
        optional("callback_of", sa.Uuid),
        build_choice("status", "waiting, answered, expired, abandoned, callback, called_back, calling"),
        build_reference("call_id", "call"),
        build_index(
            "ix_call_queue_entry_open",
            "organization_id, status, created_at",
            predicate="status in ('waiting', 'calling', 'callback')",
        ),
        sa.Index(None, "organization_id", "call_id"),
        system="select, update",
    )
    create_tenant_table(
        "queue_attendant",
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("seen_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "user_id"),
    )


def _create_text_messages() -> None:
    create_tenant_table(
        "sms_conversation",
        required("phone_number_id", sa.Uuid),
        required("contact_number", sa.Text),
        required("status", sa.Text),
        required("last_message_at", TIMESTAMP),
        optional("reply_due_at", TIMESTAMP),
        optional("answering_until", TIMESTAMP),
        required("answer_attempts", sa.Integer),
        optional("assigned_to", sa.Uuid),
        optional("resolved_at", TIMESTAMP),
        optional("waiting_since", TIMESTAMP),
        optional("last_inbound_at", TIMESTAMP),
        required("parts", JSONB),
        required("variables", JSONB),
        build_choice("status", "open, closed"),
        build_reference("phone_number_id", "phone_number"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.UniqueConstraint("organization_id", "phone_number_id", "contact_number"),
        sa.ForeignKeyConstraint(
            ["organization_id", "assigned_to"],
            ["membership.organization_id", "membership.user_id"],
            ondelete="SET NULL (assigned_to)",
        ),
        sa.Index(None, "organization_id", "created_at", "id"),
        sa.Index(None, "organization_id", "last_message_at", "id"),
        build_due_index("ix_sms_conversation_reply_due", "reply_due_at"),
        build_index(
            "ix_sms_conversation_unresolved",
            "organization_id, last_inbound_at",
            predicate="last_inbound_at is not null and resolved_at is null",
        ),
        system="select",
    )
    create_tenant_table(
        "sms_conversation_reader",
        required("conversation_id", sa.Uuid),
        required("user_id", sa.Uuid, sa.ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
        required("read_at", TIMESTAMP),
        build_reference("conversation_id", "sms_conversation"),
        sa.UniqueConstraint("organization_id", "conversation_id", "user_id"),
    )
    create_tenant_table(
        "sms_message",
        required("conversation_id", sa.Uuid),
        required("direction", sa.Text),
        required("from_number", sa.Text),
        required("to_number", sa.Text),
        required("body", sa.Text),
        optional("unsent_body", sa.String),
        required("media_urls", JSONB),
        required("status", sa.Text),
        required("author", sa.Text),
        optional("agent_id", sa.Uuid),
        required("interventions", JSONB),
        required("segments", sa.Integer),
        required("cost", MONEY),
        optional("text_cost", MONEY),
        optional("error_message", sa.Text),
        required("carrier", sa.Text),
        optional("carrier_text_id", sa.Text),
        optional("watch_at", TIMESTAMP),
        required("cause_depth", sa.Integer),
        build_choice("status", "queued, sending, sent, delivered, undelivered, failed, received"),
        build_choice("direction", "inbound, outbound"),
        build_choice("author", "contact, api, agent, automation, person, platform"),
        build_reference("conversation_id", "sms_conversation"),
        sa.Index(None, "organization_id", "conversation_id", "created_at", "id"),
        build_due_index("ix_sms_message_watched", "watch_at"),
        sa.Index(None, "organization_id", "created_at", "id"),
        system="select",
    )
    create_tenant_table(
        "sms_media",
        required("message_id", sa.Uuid, sa.ForeignKey("sms_message.id", ondelete="CASCADE")),
        optional("carrier_url", sa.String),
        optional("content_type", sa.String),
        optional("error_message", sa.String),
        optional("fetch_due_at", TIMESTAMP),
        required("attempts", sa.Integer),
        sa.Index(None, "organization_id", "message_id"),
        build_due_index("ix_sms_media_fetch_due", "fetch_due_at"),
        system="select",
    )


def _create_contacts_and_campaigns() -> None:
    create_tenant_table(
        "contact",
        required("phone_number", sa.Text),
        optional("name", sa.Text),
        optional("email", sa.Text),
        optional("company", sa.Text),
        optional("notes", sa.Text),
        optional("tags", sa.Text),
        optional("address", sa.Text),
        optional("role", sa.Text),
        required("is_favorite", sa.Boolean),
        required("updated_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "id"),
        sa.UniqueConstraint("organization_id", "phone_number"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "contact_search",
        required("content", sa.Text),
        required("notes", sa.Text),
        build_reference("id", "contact"),
        sa.Index(
            "ix_contact_search_grams", sa.text(ROW_GRAMS), postgresql_using="gin", postgresql_with={"fastupdate": "off"}
        ),
    )
    create_tenant_table(
        "do_not_call_entry",
        required("phone_number", sa.Text),
        required("source", sa.Text),
        required("note", sa.Text),
        build_choice("source", "api, text, call"),
        sa.UniqueConstraint("organization_id", "phone_number"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "campaign",
        required("name", sa.Text),
        required("agent_id", sa.Uuid),
        required("phone_number_id", sa.Uuid),
        required("status", sa.Text),
        optional("status_reason", sa.Text),
        optional("scheduled_at", TIMESTAMP),
        required("max_concurrent", sa.Integer),
        optional("retry", JSONB),
        optional("voicemail_policy", JSONB),
        required("total_contacts", sa.Integer),
        required("called", sa.Integer),
        required("completed", sa.Integer),
        required("failed", sa.Integer),
        required("skipped", sa.Integer),
        required("canceled", sa.Integer),
        required("in_flight", sa.Integer),
        required("recent", sa.Text),
        optional("due_at", TIMESTAMP),
        required("updated_at", TIMESTAMP),
        build_choice("status", "draft, scheduled, running, paused, completed, canceled, failed"),
        sa.UniqueConstraint("organization_id", "id"),
        build_due_index("ix_campaign_due", "due_at"),
        sa.Index(None, "organization_id", "created_at", "id"),
        build_index("ix_campaign_under_way", "organization_id", predicate="status in ('scheduled', 'running')"),
        system="select, update",
    )
    create_tenant_table(
        "campaign_contact",
        required("campaign_id", sa.Uuid),
        required("phone_number", sa.Text),
        optional("name", sa.Text),
        required("status", sa.Text),
        optional("outcome", sa.Text),
        optional("call_id", sa.Uuid),
        optional("error", sa.Text),
        required("attempts", sa.Integer),
        required("dial_at", TIMESTAMP),
        optional("called_at", TIMESTAMP),
        required("cause_depth", sa.Integer),
        build_choice("status", "pending, dialing, in_progress, completed, failed, skipped, canceled"),
        build_choice("outcome", "answered, voicemail, busy, no-answer, failed, invalid_number, do_not_call, canceled"),
        build_reference("campaign_id", "campaign"),
        build_index(
            "ix_campaign_contact_in_flight",
            "organization_id, campaign_id",
            predicate="status in ('dialing', 'in_progress')",
        ),
        sa.Index(None, "organization_id", "campaign_id", "created_at", "id"),
        build_index(
            "ix_campaign_contact_pending", "organization_id, campaign_id, dial_at, id", predicate="status = 'pending'"
        ),
        build_index(
            "uq_campaign_contact_number", "campaign_id, phone_number", predicate="status <> 'skipped'", unique=True
        ),
    )


def _create_events_and_automations() -> None:
    create_history_table(
        "event",
        required("name", sa.Text),
        required("data", JSONB),
        required("occurred_at", TIMESTAMP),
        required("depth", sa.Integer),
        required("triggered", sa.ARRAY(sa.Uuid)),
        sa.Index(None, "organization_id", "created_at"),
        tenant="select, insert, delete",
        system="select, update, delete",
    )
    op.execute("grant update (data) on event to switchboard_tenant")  # rotations of keys lock the rows
    create_record_table(
        "event_due",
        optional("watch_due_at", TIMESTAMP),
        optional("trigger_due_at", TIMESTAMP),
        build_due_index("ix_event_due_watch", "watch_due_at"),
        build_due_index("ix_event_due_trigger", "trigger_due_at"),
        system="select, update, delete",
    )
    delete_with_history("event", {"event_due": "id"})
    create_tenant_table("event_trigger", required("event", sa.Text), sa.Index(None, "organization_id", "event"))
    create_tenant_table(
        "event_target",
        required("kind", sa.Text),
        optional("url", sa.Text),
        optional("description", sa.Text),
        required("events", sa.ARRAY(sa.Text)),
        required("enabled", sa.Boolean),
        optional("secret", sa.Text),
        optional("previous_secret", sa.Text),
        optional("previous_secret_expires_at", TIMESTAMP),
        required("consecutive_failures", sa.Integer),
        required("concurrency", sa.Integer),
        required("drained_until", TIMESTAMP),
        required("updated_at", TIMESTAMP),
        build_choice("kind", "endpoint, agent, integration"),
        sa.Index(None, "organization_id", "created_at"),
        system="select, update",
    )
    create_history_table(
        "delivery",
        required("target_id", sa.Uuid),
        required("target_kind", sa.Text),
        required("event_type", sa.Text),
        required("subject_id", sa.Uuid),
        required("body", sa.Text),
        required("status", sa.Text),
        required("attempts", sa.Integer),
        optional("next_attempt_at", TIMESTAMP),
        optional("last_status_code", sa.Integer),
        optional("last_error", sa.Text),
        optional("replayed_from_id", sa.Uuid),
        optional("delivered_at", TIMESTAMP),
        build_choice("status", "pending, delivered, failed"),
        sa.Index(None, "organization_id", "created_at", "id"),
        sa.Index(None, "organization_id", "target_id", "created_at", "id"),
        build_index("ix_delivery_failed", "organization_id, target_id, created_at, id", predicate="status = 'failed'"),
        build_index(
            "ix_delivery_replayed", "organization_id, replayed_from_id", predicate="replayed_from_id is not null"
        ),
        system="select, update, delete",
    )
    create_record_table(
        "delivery_due",
        required("target_id", sa.Uuid),
        required("due_at", TIMESTAMP),
        required("is_ready", sa.Boolean),
        optional("lease_token", sa.Uuid),
        sa.Index(
            "ix_delivery_due_ready",
            sa.text("bucket(organization_id)"),
            "organization_id",
            "target_id",
            "due_at",
            postgresql_where=sa.text("is_ready"),
        ),
        build_due_index("ix_delivery_due_waiting", "due_at", predicate="not is_ready"),
        build_index("ix_delivery_due_leased", "organization_id, target_id, lease_token", predicate="not is_ready"),
        system="select, update, delete",
    )
    create_history_table(
        "delivery_attempt",
        required("delivery_id", sa.Uuid, primary_key=True),
        required("number", sa.Integer, primary_key=True),
        required("organization_id", sa.Uuid),
        required("started_at", TIMESTAMP),
        required("duration_ms", sa.Integer),
        optional("status_code", sa.Integer),
        optional("error", sa.Text),
        by="delivery_id",
        tenant="select, delete",
        system="select, insert, delete",
    )
    delete_with_history("delivery", {"delivery_due": "id", "delivery_attempt": "delivery_id"})
    create_tenant_table(
        "automation",
        required("name", sa.Text),
        optional("description", sa.Text),
        required("enabled", sa.Boolean),
        required("trigger_type", sa.Text),
        required("trigger_filters", JSONB),
        required("conditions", JSONB),
        required("actions", JSONB),
        required("run_count", sa.Integer),
        optional("last_run_at", TIMESTAMP),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "created_at", "id"),
    )
    create_tenant_table(
        "automation_run",
        required("automation_id", sa.Uuid),
        required("event_id", sa.Uuid),
        required("trigger_event", sa.Text),
        required("event", JSONB),
        required("depth", sa.Integer),
        required("status", sa.Text),
        optional("error_message", sa.Text),
        required("actions", JSONB),
        optional("due_at", TIMESTAMP),
        optional("lease_token", sa.Uuid),
        optional("completed_at", TIMESTAMP),
        build_choice("status", "running, completed, failed, skipped"),
        build_reference("automation_id", "automation"),
        sa.UniqueConstraint("organization_id", "automation_id", "event_id"),
        build_due_index("ix_automation_run_due", "due_at"),
        sa.Index(None, "organization_id", "automation_id", "created_at", "id"),
        build_index("ix_automation_run_over", "completed_at", predicate="completed_at is not null"),
        build_index("ix_automation_run_ended", "organization_id, completed_at", predicate="completed_at is not null"),
        system="select, delete",
    )


def _create_appointments() -> None:
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
        build_due_index("ix_calendar_changes_due_at", "changes_due_at"),
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
        build_due_index("ix_appointment_reminder_at", "reminder_at"),
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
        build_due_index("ix_calendar_entry_settle_at", "settle_at"),
        system="select",
    )


def _create_privacy() -> None:
    create_tenant_table(
        "erased_number",
        required("digest", sa.LargeBinary),
        required("source", sa.Text),
        sa.UniqueConstraint("organization_id", "digest"),
        tenant="select, insert, delete",
    )
    create_tenant_table(
        "privacy_request",
        required("kind", sa.String),
        required("status", sa.String),
        optional("sealed_number", sa.String),
        required("actor", sa.String),
        required("report", JSONB),
        optional("error_message", sa.String),
        optional("due_at", TIMESTAMP),
        optional("completed_at", TIMESTAMP),
        optional("file_expires_at", TIMESTAMP),
        build_choice("status", "queued, running, completed, failed"),
        build_choice("kind", "export, erase"),
        sa.Index(None, "organization_id", "created_at", "id"),
        build_due_index("ix_privacy_request_due", "due_at"),
        tenant="select, insert, update",
        system="select",
    )
    op.create_table(
        "deleted_usage",
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
        required("month", sa.Date, primary_key=True),
        required("calls", sa.Integer),
        required("seconds", sa.BigInteger),
        required("sent", sa.Integer),
        required("received", sa.Integer),
    )
    protect_table("deleted_usage", tenant="select, insert, update")


def _create_widgets() -> None:
    create_tenant_table(
        "widget",
        required("agent_id", sa.Uuid),
        required("name", sa.String),
        required("public_key", sa.String, unique=True),
        required("enabled", sa.Boolean),
        required("demo_enabled", sa.Boolean),
        required("allowed_origins", JSONB),
        required("text_enabled", sa.Boolean),
        required("voice_enabled", sa.Boolean),
        required("color", sa.String),
        required("position", sa.String),
        optional("title", sa.String),
        optional("greeting", sa.String),
        optional("language", sa.String),
        required("max_sessions_per_minute", sa.Integer),
        required("max_sessions_per_minute_per_address", sa.Integer),
        required("max_concurrent_sessions", sa.Integer),
        required("max_spend_per_day", MONEY),
        required("updated_at", TIMESTAMP),
        build_choice("position", "left, right"),
        build_reference("agent_id", "agent"),
        sa.UniqueConstraint("organization_id", "id"),
        sa.Index(None, "organization_id", "agent_id", "created_at"),
        system="select",
    )
    create_tenant_table(
        "widget_session",
        required("widget_id", sa.Uuid),
        optional("call_id", sa.Uuid),
        optional("answering_until", TIMESTAMP),
        build_reference("widget_id", "widget"),
        build_reference("call_id", "call"),
        sa.Index(None, "organization_id", "widget_id"),
        sa.Index(None, "organization_id", "call_id"),
    )


def _create_requests() -> None:
    op.create_table(
        "idempotency_record",
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
        required("key", sa.Text, primary_key=True),
        required("request_hash", sa.LargeBinary),
        required("status", sa.Integer),
        required("body", sa.LargeBinary),
        required("created_at", TIMESTAMP, index=True),
    )
    protect_table("idempotency_record", system="select, delete")
    op.create_table("schema_compatibility", required("oldest_program", sa.Text))


def _create_processes() -> None:
    op.create_table(
        "process_lease",
        required("node", sa.Text, primary_key=True),
        required("beat_at", TIMESTAMP),
        required("is_worker", sa.Boolean),
    )
    protect_table("process_lease", tenant="", system="select, insert, update, delete")
    # A page has space for the versions of its few rows, so that a beat touches no index.
    op.execute("alter table process_lease set (fillfactor = 50)")


def _keep_carrier_references() -> None:
    """Keep the ids by which carriers know calls and text messages in a table of their own: their uniqueness costs no
    index that each update of a call writes, and binds no history to one table.
    """
    op.create_table(
        "carrier_reference",
        required("organization_id", sa.Uuid, primary_key=True),
        required("kind", sa.Text, primary_key=True),
        required("carrier_id", sa.Text, primary_key=True),
        required("carrier", sa.Text, primary_key=True),
        required("subject_id", sa.Uuid),
        build_choice("kind", "call, text"),
    )
    protect_table("carrier_reference")
    for table, kind, column in (("call", "call", "carrier_call_id"), ("sms_message", "text", "carrier_text_id")):
        for body in (CREATE_REFER, CREATE_FORGET):
            op.execute(body.format(table=table, kind=kind, column=column))
        known, before = f"new.{column} is not null", f"(old.carrier, old.{column})"
        changed = f"{known} and {before} is distinct from (new.carrier, new.{column})"
        events = ("insert", "insert", known), ("update", f"update of carrier, {column}", changed)
        for name, event, condition in events:
            op.execute(
                f"create trigger refer_to_{table}_after_{name} after {event} on {table} for each row "
                f"when ({condition}) execute function refer_to_{table}()"
            )
        op.execute(
            f"create trigger forget_{table} after delete on {table} referencing old table as deleted "
            f"for each statement execute function forget_{table}()"
        )


def _let_erasure_and_retention_change_records() -> None:
    # An organization's transaction may delete what its retention has expired, and nothing younger.
    op.execute(
        "create policy retention on audit_entry as restrictive for delete "
        f"to switchboard_tenant using (created_at < now() - make_interval(days => ({AUDIT_DAYS})))"
    )
    # Entries of the audit log and of the ledger do not change, except for a number in them that is erased.
    for table, column in (("audit_entry", "subject"), ("ledger_entry", "note"), ("delivery_attempt", "error")):
        op.execute(f"grant update ({column}) on {table} to switchboard_tenant")
        op.execute(
            f"create policy erasure on {table} as restrictive for update to switchboard_tenant "
            "using ((select current_setting('app.erasure', true)) = 'on')"
        )


def _let_tenants_see_and_change_columns() -> None:
    # Applications belong to no organization; every organization may see their names.
    op.execute("grant select (id, client_id, name) on oauth_client to switchboard_tenant")
    op.execute("create policy tenant on oauth_client for select to switchboard_tenant using (true)")
    # An organization sees the e-mail addresses of its members and of nobody else: the subquery runs under the policy of
    # membership.
    members = "exists (select from membership where membership.user_id = user_account.id)"
    op.execute("grant select (id, email) on user_account to switchboard_tenant")
    op.execute(f"create policy tenant on user_account for select to switchboard_tenant using ({members})")
    # Owners decide about support sessions; only the operator suspends.
    changed = "narrowed_destinations, setup_dismissed_at, allows_support, language, logo_digest"
    op.execute(f"grant update ({changed}) on organization to switchboard_tenant")
    op.execute("grant update (ended_at) on support_session to switchboard_tenant")
    op.execute("grant update (revoked_at) on oauth_grant to switchboard_tenant")


def _let_system_read_columns() -> None:
    for table, columns in (
        # For the rotation of keys, and for the processes that serve accounts of providers. The settings themselves are
        # read as each organization.
        ("provider_configuration", "organization_id, secrets, capability, name, updated_at"),
        ("integration", "organization_id, partner_api_key"),
        # For the operator's list of organizations: balances and costs, without notes and references.
        ("account", "organization_id, balance"),
        ("ledger_entry", "organization_id, created_at, kind, amount"),
    ):
        op.execute(f"grant select ({columns}) on {table} to switchboard_system")
        op.execute(f"create policy system on {table} for select to switchboard_system using (true)")


def _let_imports_insert_users() -> None:
    # An imported organization's members, and the applications that they allowed. No import changes one that exists.
    for table in ("authenticator_app", "oauth_client", "recovery_code", "user_account"):
        op.execute(
            f"create policy import on {table} for insert to current_user "
            "with check ((select current_setting('app.import', true)) <> '')"
        )


def _let_searches_use_indexes() -> None:
    # The condition is in the policy: row-level security does not let a query's own condition into the index
    # (docs/decisions/0012-contact-search.md).
    own = f"organization_id = (select {CURRENT})"
    op.execute(f"alter policy tenant on contact_search using ({own} and {ROW_GRAMS} @> (select {SEARCHED_GRAMS}))")
    for table, visible in (
        ("call", own),
        ("contact", own),
        ("transcript_search", f"{own} and words @> (select {SEARCHED_WORDS})"),
    ):
        op.execute(f"grant select on {table} to switchboard_search")
        op.execute(f"create policy search on {table} to switchboard_search using ({visible})")


def _count_rows() -> None:
    """Count the rows of each list: by the column that its lists lie under, and by the columns that they are filtered
    by.
    """
    op.create_table(
        "row_count",
        required("organization_id", sa.Uuid, primary_key=True),
        required("list", sa.Text, primary_key=True),
        required("parent", sa.Uuid, primary_key=True),
        required("facets", JSONB, primary_key=True),
        required("rows", sa.BigInteger),
        build_index("ix_row_count_none", "organization_id", predicate="rows = 0"),
    )
    protect_table("row_count", tenant="select", system="select, insert, update, delete")
    op.create_table(
        "row_count_change",
        required("organization_id", sa.Uuid, primary_key=True),
        required("list", sa.Text, primary_key=True),
        required("parent", sa.Uuid, primary_key=True),
        required("id", sa.Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()")),
        required("facets", JSONB),
        required("rows", sa.BigInteger),
    )
    protect_table("row_count_change", tenant="select", system="select, insert, delete")
    op.execute("create policy owner on row_count_change to current_user using (true) with check (true)")
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


def _count_for_limits() -> None:
    """Count what limits compare, as `read_limit_counts` reads the counts. No foreign keys: the organization's row would
    be locked with each count.
    """
    op.create_table(
        "limit_counter",
        required("organization_id", sa.Uuid, primary_key=True),
        required("subject_id", sa.Uuid, primary_key=True),
        required("moment", TIMESTAMP, primary_key=True),
        required("name", sa.Text, primary_key=True),
        required("number", sa.BigInteger),
        required("amount", sa.Numeric),
    )
    protect_table("limit_counter", system="select, insert, update, delete")
    op.execute("alter table limit_counter set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)")
    op.create_table(
        "limit_counter_change",
        required("organization_id", sa.Uuid, primary_key=True),
        required("id", sa.Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()")),
        required("subject_id", sa.Uuid),
        required("moment", TIMESTAMP),
        required("name", sa.Text),
        required("number", sa.BigInteger),
        required("amount", sa.Numeric),
    )
    protect_table("limit_counter_change", tenant="select, delete", system="select, delete")
    op.execute("create policy owner on limit_counter_change to current_user using (true) with check (true)")
    op.execute("alter table limit_counter_change set (autovacuum_vacuum_scale_factor = 0.02)")
    create_limit_counter(
        "call", COUNTS_OF_CALL, changing="status, started_at, ended_at, transferred_to, cost_total, widget_id"
    )
    create_limit_counter("sms_message", COUNTS_OF_MESSAGE)
    create_limit_counter("ledger_entry", COUNTS_OF_ENTRY)
    create_limit_counter("ledger_hold", COUNTS_OF_HOLD, changing="amount")
    create_limit_counter("widget_session", COUNTS_OF_SESSION, changing="call_id")


def _tune_storage() -> None:
    # By default a fifth of a table is dead before it is vacuumed, which takes long in a large one. `add_month` says the
    # same of months.
    op.execute("alter table sms_message set (autovacuum_vacuum_scale_factor = 0.02)")


def _keep_months() -> None:
    """Let workers create the months of the history ahead of time, and drop those that nobody has rows in."""
    for function in (CREATE_LOWEST_ID, CREATE_ADD_MONTH, CREATE_KEEP_MONTHS):
        op.execute(function)
    for signature in ("add_month(name, date)", "keep_months(name)"):
        op.execute(f"revoke execute on function {signature} from public")
    op.execute("grant execute on function keep_months(name) to switchboard_system")
    op.execute(
        "select keep_months(relname) from pg_partitioned_table join pg_class on oid = partrelid "
        "where relnamespace = current_schema()::regnamespace"
    )
