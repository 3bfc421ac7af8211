"""Row-level security for each table, applied by its migration."""

from alembic import op

BACKUP_POLICY = "for select to current_user using ((select current_setting('app.backup', true)) = 'on')"
CURRENT = "nullif(current_setting('app.organization_id', true), '')::uuid"


def protect_table(
    table: str, *, system: str = "", column: str = "organization_id", tenant: str = "select, insert, update, delete"
) -> None:
    """Show an organization only its own rows, and grant the system role the given privileges across organizations.

    Forced, so that it applies to the owner of the table too, which reads rows only for a backup. `tenant` and `system`
    are lists of privileges, empty for none.
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
    if system:
        op.execute(f"grant {system} on {table} to switchboard_system")
        op.execute(f"create policy system on {table} to switchboard_system using (true) with check (true)")
