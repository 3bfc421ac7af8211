"""The setup list, saved views, and the search of transcripts, under a role of its own."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import CURRENT, protect_table

revision = "0032"
down_revision = "0030"
oldest_program = "0001"

# An encrypted text has no words here, and `to_tsvector` raises an error above a megabyte. The organization is one of
# the words, so that a search reads only its entries.
CREATE_TRANSCRIPT_WORDS = """
create function transcript_words(organization uuid, content text) returns text[]
language sql immutable parallel safe
return array[organization::text] || case
    when content like 'sbt1.%' then '{}'::text[]
    else tsvector_to_array(to_tsvector('simple', left(content, 100000))) end
"""
SEARCHED_WORDS = f"transcript_words({CURRENT}, coalesce(current_setting('app.transcript_search', true), ''))"


def upgrade() -> None:
    op.add_column("provider_configuration", sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("organization", sa.Column("setup_dismissed_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("grant update (setup_dismissed_at) on organization to switchboard_tenant")
    op.create_table(
        "saved_view",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("organization_id", sa.Uuid(), sa.ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("page", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.UniqueConstraint("organization_id", "page", "name"),
    )
    protect_table("saved_view")
    op.execute(CREATE_TRANSCRIPT_WORDS)
    for table in ("call", "contact"):
        op.execute(f"grant select on {table} to switchboard_search")
        op.execute(
            f"create policy search on {table} to switchboard_search using (organization_id = (select {CURRENT}))"
        )
    op.execute("grant usage on schema public to switchboard_search")
    op.execute("grant select on transcript_line to switchboard_search")
    # In the policy: row-level security does not let a query's own condition into the index.
    visible = (
        f"organization_id = (select {CURRENT})"
        f" and transcript_words(organization_id, content) @> (select {SEARCHED_WORDS})"
    )
    op.execute(f"create policy search on transcript_line to switchboard_search using ({visible})")
