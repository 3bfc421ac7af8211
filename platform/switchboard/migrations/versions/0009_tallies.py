"""How many rows each list has, kept by triggers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0009"
down_revision = "0008"

# Table, the column that its lists lie under, the columns that they are filtered by.
TALLIES = (
    ("agent", None, ("agent_type",)),
    ("agent_version", "agent_id", ()),
    ("automation", None, ()),
    ("automation_run", "automation_id", ()),
    ("call", None, ("agent_id", "direction", "status")),
    ("campaign", None, ()),
    ("campaign_contact", "campaign_id", ()),
    ("contact", None, ()),
    ("delivery", "target_id", ("target_kind",)),
    ("do_not_call_entry", None, ()),
    ("knowledge_base", None, ()),
    ("knowledge_document", "knowledge_base_id", ()),
    ("phone_number", None, ("status",)),
    ("sms_conversation", None, ()),
    ("sms_message", "conversation_id", ()),
)
# Facets that change while a row lives.
CHANGING = {"call": "status", "phone_number": "status"}
COLUMNS = "row_tally (organization_id, list, parent, facets, rows)"


def key(table: str, parent: str | None, facets: tuple[str, ...], row: str = "") -> str:
    pairs = ", ".join(f"'{facet}', {row}{facet}" for facet in facets)
    under = f"{row}{parent}" if parent else "'00000000-0000-0000-0000-000000000000'::uuid"
    return f"{row}organization_id, '{table}', {under}, jsonb_build_object({pairs})"


def function(name: str, body: str) -> str:
    # As the owner, whoever writes: a tenant may see the sums and not change them, and rows that a foreign key deletes are the owner's doing anyway.
    how = "language plpgsql security definer set search_path from current"
    return f"create function {name}() returns trigger {how} as $$ begin {body} return null; end $$"


def tally(table: str, parent: str | None, facets: tuple[str, ...]) -> None:
    grouped = key(table, parent, facets)
    op.execute(f"insert into {COLUMNS} select {grouped}, count(*) from {table} group by 1, 3, 4")  # noqa: S608
    for event, transition, sign in (("insert", "new table as changed", ""), ("delete", "old table as changed", "-")):
        name = f"tally_{table}_{event}"
        op.execute(function(name, f"insert into {COLUMNS} select {grouped}, {sign}count(*) from changed group by 1, 3, 4;"))  # noqa: S608
        op.execute(f"create trigger {name} after {event} on {table} referencing {transition} for each statement execute function {name}()")
    if table in CHANGING:
        name = f"tally_{table}_update"
        before, after = key(table, parent, facets, "old."), key(table, parent, facets, "new.")
        op.execute(function(name, f"insert into {COLUMNS} values ({before}, -1), ({after}, 1);"))  # noqa: S608
        changed = f"old.{CHANGING[table]} is distinct from new.{CHANGING[table]}"
        op.execute(f"create trigger {name} after update of {CHANGING[table]} on {table} for each row when ({changed}) execute function {name}()")


def upgrade() -> None:
    op.create_table(
        "row_tally",
        sa.Column("id", sa.Uuid(), nullable=False, server_default=sa.text("gen_random_uuid()")),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("list", sa.Text(), nullable=False),
        sa.Column("parent", sa.Uuid(), nullable=False),
        sa.Column("facets", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_row_tally")),
    )
    op.create_index(op.f("ix_row_tally_organization_id_list_parent"), "row_tally", ["organization_id", "list", "parent"])
    whose = ["organization_id", "agent_id", "created_at", "id"]
    op.create_index(op.f("ix_agent_version_organization_id_agent_id_created_at_id"), "agent_version", whose)
    for table, parent, facets in TALLIES:
        tally(table, parent, facets)
    protect("row_tally", tenant="select", system="select, insert, delete")
    op.execute("create policy owner on row_tally to current_user using (true) with check (true)")


def downgrade() -> None:
    for table, _, _ in TALLIES:
        for event in ("insert", "delete", *(("update",) if table in CHANGING else ())):
            op.execute(f"drop trigger tally_{table}_{event} on {table}")
            op.execute(f"drop function tally_{table}_{event}")
    op.drop_table("row_tally")
    op.drop_index(op.f("ix_agent_version_organization_id_agent_id_created_at_id"), "agent_version")
