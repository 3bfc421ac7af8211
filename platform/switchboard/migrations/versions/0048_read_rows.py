"""Function that runs a query under a role and for an organization, in one statement."""

from alembic import op

revision = "0048"
down_revision = "0047"
oldest_program = "0001"

# `stable`: it cannot write. Its parameters are texts, which the query casts.
CREATE_READ_ROWS = """
create function read_rows(role text, organization uuid, query text, parameters text[]) returns setof record
language plpgsql stable as $$
begin
    perform set_config('role', role, true), set_config('app.organization_id', organization::text, true);
    return query execute query using parameters;
end $$
"""


def upgrade() -> None:
    op.execute(CREATE_READ_ROWS)
    # Everybody may execute a new function otherwise. The owner calls it, and has no role yet.
    op.execute("revoke execute on function read_rows(text, uuid, text, text[]) from public")
