"""How many rows each list has, kept by triggers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tallies import tally, untally
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
    op.create_index(
        op.f("ix_row_tally_organization_id_list_parent"), "row_tally", ["organization_id", "list", "parent"]
    )
    whose = ["organization_id", "agent_id", "created_at", "id"]
    op.create_index(op.f("ix_agent_version_organization_id_agent_id_created_at_id"), "agent_version", whose)
    for table, parent, facets in TALLIES:
        tally(table, parent, facets, changing=CHANGING.get(table))
    protect("row_tally", tenant="select", system="select, insert, delete")
    op.execute("create policy owner on row_tally to current_user using (true) with check (true)")


def downgrade() -> None:
    for table, _, _ in TALLIES:
        untally(table, changing=CHANGING.get(table))
    op.drop_table("row_tally")
    op.drop_index(op.f("ix_agent_version_organization_id_agent_id_created_at_id"), "agent_version")
