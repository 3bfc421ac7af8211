"""How many rows a list has, kept by triggers (`web/totals.py` reads it)."""

from alembic import op

COLUMNS = "row_tally (organization_id, list, parent, facets, rows)"


def tally(table: str, parent: str | None = None, facets: tuple[str, ...] = (), *, changing: str | None = None) -> None:
    """Count a table's rows from now on, those that are there included.

    `parent` is the column that its lists lie under, `facets` are those that they are filtered by, `changing` the one that changes while a row lives.
    """
    grouped = _key(table, parent, facets)
    # Row-level security is forced on the owner too, who would count no row.
    op.execute(f"alter table {table} no force row level security")
    op.execute(f"insert into {COLUMNS} select {grouped}, count(*) from {table} group by 1, 3, 4")  # noqa: S608
    op.execute(f"alter table {table} force row level security")
    for event, transition, sign in (("insert", "new table as changed", ""), ("delete", "old table as changed", "-")):
        name = f"tally_{table}_{event}"
        difference = f"insert into {COLUMNS} select {grouped}, {sign}count(*) from changed group by 1, 3, 4;"  # noqa: S608
        op.execute(_function(name, difference))
        op.execute(
            f"create trigger {name} after {event} on {table} referencing {transition} for each statement execute function {name}()"
        )
    if changing is not None:
        name = f"tally_{table}_update"
        before, after = _key(table, parent, facets, "old."), _key(table, parent, facets, "new.")
        op.execute(_function(name, f"insert into {COLUMNS} values ({before}, -1), ({after}, 1);"))  # noqa: S608
        changed = f"old.{changing} is distinct from new.{changing}"
        op.execute(
            f"create trigger {name} after update of {changing} on {table} for each row when ({changed}) execute function {name}()"
        )


def _key(table: str, parent: str | None, facets: tuple[str, ...], row: str = "") -> str:
    pairs = ", ".join(f"'{facet}', {row}{facet}" for facet in facets)
    under = f"{row}{parent}" if parent else "'00000000-0000-0000-0000-000000000000'::uuid"
    return f"{row}organization_id, '{table}', {under}, jsonb_build_object({pairs})"


def _function(name: str, body: str) -> str:
    # As the owner, whoever writes: a tenant may see the sums and not change them, and rows that a foreign key deletes are the owner's doing anyway.
    how = "language plpgsql security definer set search_path from current"
    return f"create function {name}() returns trigger {how} as $$ begin {body} return null; end $$"
