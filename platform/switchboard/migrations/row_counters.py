"""Triggers that count the rows of a table (`foundation/web/row_counts.py` reads the counts)."""

from alembic import op

COLUMNS = "row_count (organization_id, list, parent, facets, rows)"


def create_row_counter(
    table: str, parent: str | None = None, facets: tuple[str, ...] = (), *, changing: str | None = None
) -> None:
    """Create the triggers that count a table's rows, and count its present rows.

    `parent` and `facets` are those of the table's `RowCounter`; `changing` is the facet that an update may change.
    """
    grouped = _key(table, parent, facets)
    # Forced row-level security applies to the owner too, who would count no row.
    op.execute(f"alter table {table} no force row level security")
    op.execute(f"insert into {COLUMNS} select {grouped}, count(*) from {table} group by 1, 3, 4")  # noqa: S608
    op.execute(f"alter table {table} force row level security")
    for event, transition, sign in (("insert", "new table as changed", ""), ("delete", "old table as changed", "-")):
        name = f"count_{table}_{event}"
        counted = f"{sign}count(*) from changed group by 1, 3, 4"
        difference = f"insert into {COLUMNS} select {grouped}, {counted};"
        op.execute(_function(name, difference))
        op.execute(
            f"create trigger {name} after {event} on {table} referencing {transition} for each statement "
            f"execute function {name}()"
        )
    if changing is not None:
        name = f"count_{table}_update"
        before, after = _key(table, parent, facets, "old."), _key(table, parent, facets, "new.")
        op.execute(_function(name, f"insert into {COLUMNS} values ({before}, -1), ({after}, 1);"))  # noqa: S608
        changed = f"old.{changing} is distinct from new.{changing}"
        op.execute(
            f"create trigger {name} after update of {changing} on {table} for each row when ({changed}) execute "
            f"function {name}()"
        )


def _key(table: str, parent: str | None, facets: tuple[str, ...], row: str = "") -> str:
    pairs = ", ".join(f"'{facet}', {row}{facet}" for facet in facets)
    under = f"{row}{parent}" if parent else "'00000000-0000-0000-0000-000000000000'::uuid"
    return f"{row}organization_id, '{table}', {under}, jsonb_build_object({pairs})"


def _function(name: str, body: str) -> str:
    # Runs as the owner of the tables: a tenant may read the counts and not change them, and a foreign key's cascade
    # deletes rows as the owner.
    attributes = "language plpgsql security definer set search_path from current"
    return f"create function {name}() returns trigger {attributes} as $$ begin {body} return null; end $$"
