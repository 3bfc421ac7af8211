"""One lease for each process, in place of one for each call."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.operations import TIMESTAMP, protect_table, required

revision = "0003_process_leases"
down_revision = "0002_appointments"
oldest_program = "0001_schema"


def upgrade() -> None:
    op.create_table("process_lease", required("node", sa.Text, primary_key=True), required("beat_at", TIMESTAMP))
    protect_table("process_lease", tenant="", system="select, insert, update, delete")
    # A page has space for the versions of its few rows, so that a beat touches no index.
    op.execute("alter table process_lease set (fillfactor = 50)")
    op.create_index("ix_call_held", "call", ["holder"], postgresql_where=sa.text("holder is not null"))
