"""Deletion by retention: privileges, the transcripts that are kept, and the usage of what was deleted."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import CURRENT, protect_table

revision = "0007"
down_revision = "0006"
oldest_program = "0001"

# An organization's transaction may delete what its retention has expired, and nothing younger.
AUDIT_DAYS = f"""
select (policy #>> '{{retention,audit}}')::int from organization
where id = (select {CURRENT}) and not (policy #>> '{{retention,legal_hold}}')::boolean
"""  # noqa: S608


def upgrade() -> None:
    op.add_column("call", sa.Column("has_transcript", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.create_table(
        "deleted_usage",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.BigInteger(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("received", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_deleted_usage_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "month", name=op.f("pk_deleted_usage")),
    )
    protect_table("deleted_usage", tenant="select, insert, update")
    # By default a fifth of a table is dead before it is vacuumed, which takes long in a large one.
    for table in ("transcript_line", "sms_message", "event", "audit_entry"):
        op.execute(f"alter table {table} set (autovacuum_vacuum_scale_factor = 0.02)")
    op.execute("grant delete on delivery, event, audit_entry to switchboard_tenant")
    op.execute(
        "create policy retention on audit_entry as restrictive for delete "
        f"to switchboard_tenant using (created_at < now() - make_interval(days => ({AUDIT_DAYS})))"
    )
