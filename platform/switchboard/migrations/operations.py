"""Operations of migrations: tables with row-level security, counts of rows, and indexes that are built while a table
is in use.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import text
from sqlalchemy.schema import SchemaItem

BACKUP_POLICY = "for select to current_user using ((select current_setting('app.backup', true)) = 'on')"
IMPORTED = "(select nullif(current_setting('app.import', true), '')::uuid)"
CURRENT = "nullif(current_setting('app.organization_id', true), '')::uuid"
ROW_COUNT_CHANGES = "row_count_change (organization_id, list, parent, facets, rows)"
LIMIT_COUNTER_CHANGES = "limit_counter_change (organization_id, subject_id, moment, name, number, amount)"
TIMESTAMP, MONEY = sa.DateTime(timezone=True), sa.Numeric(14, 6)

# The metadata's naming convention (`foundation/database/columns.py`) names what has no name here.
required: partial[sa.Column[Any]] = partial(sa.Column, nullable=False)
optional: partial[sa.Column[Any]] = partial(sa.Column, nullable=True)


def create_tenant_table(name: str, *items: SchemaItem, **privileges: str) -> None:
    """Create a table of rows that belong to an organization. `privileges` are those of `protect_table`."""
    op.create_table(
        name,
        required("id", sa.Uuid, primary_key=True),
        required("organization_id", sa.Uuid, sa.ForeignKey("organization.id", ondelete="CASCADE")),
        required("created_at", TIMESTAMP),
        *items,
    )
    protect_table(name, **privileges)


def create_record_table(name: str, *items: SchemaItem, **privileges: str) -> None:
    """Create a table of rows that are inserted often: as `create_tenant_table`, but without the foreign key to the
    organization, whose one row would be locked with each of them. They are deleted as `delete_with_organization` says.
    """
    op.create_table(name, *_build_record_columns(), *items)
    protect_table(name, **privileges)


def create_history_table(name: str, *items: SchemaItem, by: str = "id", **privileges: str) -> None:
    """Create a table as `create_record_table`, partitioned by the month of the id in the column `by`, which sorts by
    time. With another column than `id`, the items have all of its columns.

    `keep_months` creates the months, and drops those without rows. Nobody but the owner may address one of them. Rows
    of other months are in the table with `_rest` in its name.
    """
    columns = _build_record_columns() if by == "id" else []
    op.create_table(name, *columns, *items, postgresql_partition_by=f"range ({by})")
    protect_table(name, **privileges)
    op.execute(f"create table {name}_rest partition of {name} default")


def _build_record_columns() -> list[sa.Column[Any]]:
    return [
        required("id", sa.Uuid, primary_key=True),
        required("organization_id", sa.Uuid),
        required("created_at", TIMESTAMP),
    ]


def delete_with_history(table: str, parts: dict[str, str]) -> None:
    """Delete rows of other tables with those of a history table: `parts` are the tables, each with its column that has
    the id. The trigger stands for foreign keys, with which a new month would lock both tables against writers.
    """
    name = f"delete_parts_of_{table}"
    deletions = " ".join(
        f"delete from {part} where {column} = any(array(select id from deleted));"  # noqa: S608
        for part, column in parts.items()
    )
    op.execute(
        f"create function {name}() returns trigger language plpgsql set search_path from current "
        f"as $$ begin {deletions} return null; end $$"
    )
    op.execute(
        f"create trigger {name} after delete on {table} referencing old table as deleted for each statement "
        f"execute function {name}()"
    )


def delete_with_organization(table: str) -> None:
    """Let the system role delete the rows of organizations that do not exist any more, and no others."""
    op.execute(f"grant select (organization_id), delete on {table} to switchboard_system")
    op.execute(
        f"create policy deleted_organization on {table} as restrictive for delete to switchboard_system "
        f"using (not exists (select from organization owner where owner.id = {table}.organization_id))"
    )


def build_reference(column: str, table: str) -> sa.ForeignKeyConstraint:
    """Build the foreign key of a row to a row of the same organization, with which it is deleted."""
    return sa.ForeignKeyConstraint(
        ["organization_id", column], [f"{table}.organization_id", f"{table}.id"], ondelete="CASCADE"
    )


def build_choice(column: str, values: str) -> sa.CheckConstraint:
    """Build the check that a column has one of the values, which are separated by commas."""
    quoted = ", ".join(f"'{value}'" for value in values.split(", "))
    return sa.CheckConstraint(f"{column} in ({quoted})", name=column)


def build_index(name: str, columns: str, *, predicate: str, unique: bool = False) -> sa.Index:
    """Build an index of the rows that meet a condition, on the columns, which are separated by commas."""
    return sa.Index(name, *columns.split(", "), unique=unique, postgresql_where=sa.text(predicate))


def build_due_index(name: str, column: str, *, predicate: str | None = None) -> sa.Index:
    """Build the index of due rows by the bucket of their organization: of those that meet the condition, or of those
    that have a moment in `column`.
    """
    condition = sa.text(predicate or f"{column} is not null")
    return sa.Index(name, sa.text("bucket(organization_id)"), column, postgresql_where=condition)


def protect_table(
    table: str, *, system: str = "", column: str = "organization_id", tenant: str = "select, insert, update, delete"
) -> None:
    """Show an organization only its own rows, and grant the system role the given privileges across organizations.

    Forced, so that it applies to the owner of the table too, which reads rows only for a backup, and inserts those of
    an organization only to import it. `tenant` and `system` are lists of privileges, empty for none.
    """
    op.execute(f"alter table {table} enable row level security")
    op.execute(f"alter table {table} force row level security")
    op.execute(f"create policy backup on {table} {BACKUP_POLICY}")
    if tenant:
        op.execute(f"grant {tenant} on {table} to switchboard_tenant")
        condition = f"{column} = (select {CURRENT})"
        op.execute(
            f"create policy tenant on {table} to switchboard_tenant using ({condition}) with check ({condition})"
        )
        op.execute(f"create policy import on {table} for insert to current_user with check ({column} = {IMPORTED})")
    if system:
        op.execute(f"grant {system} on {table} to switchboard_system")
        op.execute(f"create policy system on {table} to switchboard_system using (true) with check (true)")


def create_row_counter(
    table: str, parent: str | None = None, facets: tuple[str, ...] = (), *, changing: str | None = None
) -> None:
    """Create the triggers that count a table's rows (`foundation/web/row_counts.py` reads the counts), and count its
    present rows.

    `parent` and `facets` are those of the table's `RowCounter`; `changing` is the facet that an update may change.
    """
    grouped = _key(table, parent, facets)
    # Forced row-level security applies to the owner too, who would count no row.
    op.execute(f"alter table {table} no force row level security")
    present = f"select {grouped}, count(*) from {table} group by 1, 3, 4"  # noqa: S608
    op.execute(f"insert into {ROW_COUNT_CHANGES} {present}")
    op.execute(f"alter table {table} force row level security")
    for event, transition, sign in (("insert", "new table as changed", ""), ("delete", "old table as changed", "-")):
        name = f"count_{table}_{event}"
        counted = f"{sign}count(*) from changed group by 1, 3, 4"
        difference = f"insert into {ROW_COUNT_CHANGES} select {grouped}, {counted};"
        op.execute(build_count_function(name, difference))
        op.execute(
            f"create trigger {name} after {event} on {table} referencing {transition} for each statement "
            f"execute function {name}()"
        )
    if changing is not None:
        name = f"count_{table}_update"
        before, after = _key(table, parent, facets, "old."), _key(table, parent, facets, "new.")
        difference = f"insert into {ROW_COUNT_CHANGES} values ({before}, -1), ({after}, 1);"  # noqa: S608
        op.execute(build_count_function(name, difference))
        changed = f"old.{changing} is distinct from new.{changing}"
        op.execute(
            f"create trigger {name} after update of {changing} on {table} for each row when ({changed}) execute "
            f"function {name}()"
        )


def create_limit_counter(table: str, counts: Sequence[tuple[str, str, str, str, str]], *, changing: str = "") -> None:
    """Create the triggers that report the counts of a table's rows which limits compare, as changes of `LimitCounter`.

    `counts` are those of one row, with `{row}` in its place: the id of their subject, moment, name, number, and amount.
    `changing` are the columns of which the counts change with an update. Rows that are there already are not counted.
    """
    for event, columns, signs in (
        ("insert", "", {"new": ""}),
        ("update", f"of {changing}", {"new": "", "old": "-"}),
        ("delete", "", {"old": "-"}),
    ):
        if event == "update" and not changing:
            continue
        # No limit compares more than a day.
        recent = "> now() - interval '2 days'" if event == "delete" else "is not null"
        values = ", ".join(
            f"({subject}, {moment}, '{name}', {sign}({number})::integer, {sign}({amount})::numeric)".format(row=row)
            for row, sign in signs.items()
            for subject, moment, name, number, amount in counts
        )
        body = (
            f"insert into {LIMIT_COUNTER_CHANGES} "  # noqa: S608 - ours
            f"select {next(iter(signs))}.organization_id, subject_id, moment, name, sum(number), sum(amount) "
            f"from (values {values}) counts (subject_id, moment, name, number, amount) "
            f"where subject_id is not null and moment {recent} "
            "group by 2, 3, 4 having sum(number) <> 0 or sum(amount) <> 0;"
        )
        name = f"count_{table}_{event}_for_limits"
        op.execute(build_count_function(name, body))
        op.execute(f"create trigger {name} after {event} {columns} on {table} for each row execute function {name}()")


def _key(table: str, parent: str | None, facets: tuple[str, ...], row: str = "") -> str:
    pairs = ", ".join(f"'{facet}', {row}{facet}" for facet in facets)
    under = f"{row}{parent}" if parent else "'00000000-0000-0000-0000-000000000000'::uuid"
    return f"{row}organization_id, '{table}', {under}, jsonb_build_object({pairs})"


def build_count_function(name: str, body: str) -> str:
    """Build the statement that creates the function of a trigger."""
    # Runs as the owner of the tables: a tenant may read the counts and not change them, and a foreign key's cascade
    # deletes rows as the owner.
    attributes = "language plpgsql security definer set search_path from current"
    return f"create function {name}() returns trigger {attributes} as $$ begin {body} return null; end $$"


def create_index_concurrently(
    name: str,
    table: str,
    columns: Sequence[str],
    *,
    include: Sequence[str] = (),
    method: str = "btree",
    predicate: str | None = None,
) -> None:
    """Create an index without a lock that writers wait for, outside of the migration's transaction.

    It waits for the transactions that are open, however long they take, and delays no other transaction. The remains of
    an interrupted attempt are dropped first (PostgreSQL manual, CREATE INDEX, "Building Indexes Concurrently"), so the
    migration may be run again; it must do nothing else.
    """
    condition = f" where {predicate}" if predicate else ""
    included = f" include ({', '.join(include)})" if include else ""
    with op.get_context().autocommit_block():
        lock_timeout = op.get_bind().execute(text("show lock_timeout")).scalar_one()
        op.execute("set lock_timeout = 0")
        op.execute(f"drop index concurrently if exists {name}")
        op.execute(
            f"create index concurrently {name} on {table} using {method} ({', '.join(columns)}){included}{condition}"
        )
        op.execute(f"set lock_timeout = '{lock_timeout}'")
