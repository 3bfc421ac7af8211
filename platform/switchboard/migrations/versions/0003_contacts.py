"""Contacts and the do-not-call list."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import CURRENT, protect

revision = "0003"
down_revision = "0002"

# All runs of three letters in the words of a text, and one that every text has, as numbers that differ from organization to organization: in
# the index one organization's search meets no other's rows. Its cost keeps the planner from computing it for each row where the index would do.
GRAMS = """
create function contact_grams(organization_id uuid, content text) returns integer[]
language sql immutable strict parallel safe cost 2000 as $$
    select array_agg(distinct hashtext(organization_id::text || gram)) from (
        select '' as gram
        union all
        select substr(word, place, 3) from string_to_table(content, ' ') as word, generate_series(1, length(word) - 2) as place
    ) as grams
$$
"""
ROW_GRAMS = "contact_grams(organization_id, content || ' ' || notes)"
WANTED = f"contact_grams({CURRENT}, coalesce(current_setting('app.contact_search', true), ''))"


def upgrade() -> None:
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
        unique=False,
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
        op.f("ix_contact_organization_id_created_at_id"),
        "contact",
        ["organization_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "contact_search",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_contact_search_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "id"],
            ["contact.organization_id", "contact.id"],
            name=op.f("fk_contact_search_organization_id_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contact_search")),
    )
    op.execute(GRAMS)
    op.execute(
        f"create index ix_contact_search_grams on contact_search using gin ({ROW_GRAMS}) with (fastupdate = off)"
    )
    protect("do_not_call_entry")
    protect("contact")
    protect("contact_search")
    # In the policy, because a condition of a query would not be let into the index under row-level security.
    visible = f"organization_id = (select {CURRENT}) and {ROW_GRAMS} @> (select {WANTED})"
    op.execute(f"alter policy tenant on contact_search using ({visible})")


def downgrade() -> None:
    op.drop_table("contact_search")
    op.execute("drop function contact_grams")
    op.drop_table("contact")
    op.drop_table("do_not_call_entry")
