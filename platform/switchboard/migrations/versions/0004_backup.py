"""Let the owner of the tables read every row for a backup, and the system role the keys of encrypted values."""

from alembic import op
from sqlalchemy import text
from switchboard.migrations.tenancy import BACKUP_POLICY

revision = "0004"
down_revision = "0003"
oldest_program = "0001"

# A table from before this migration; `protect_table` creates the policy for later ones.
WITHOUT_POLICY = """
select relname from pg_class
where relforcerowsecurity and relnamespace = current_schema()::regnamespace
  and not exists (select from pg_policy where polrelid = pg_class.oid and polname = 'backup')
"""
ENCRYPTED = {"provider_configuration": "secrets", "integration": "partner_api_key"}


def upgrade() -> None:
    for table in op.get_bind().execute(text(WITHOUT_POLICY)).scalars().all():
        op.execute(f"create policy backup on {table} {BACKUP_POLICY}")
    for table, column in ENCRYPTED.items():
        op.execute(f"grant select (organization_id, {column}) on {table} to switchboard_system")
        op.execute(f"create policy system on {table} for select to switchboard_system using (true)")
