"""Simulations of conversations with agents."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    kind = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
    op.create_table(
        "simulation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("lines", kind, nullable=False),
        sa.Column("max_turns", sa.Integer(), nullable=False),
        sa.Column("assertions", kind, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("criteria", kind, nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("duration_seconds", sa.Integer(), nullable=False),
        sa.Column("transcript", kind, nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("mode in ('text', 'audio')", name=op.f("ck_simulation_mode")),
        sa.CheckConstraint(
            "status in ('queued', 'running', 'passed', 'failed', 'error')", name=op.f("ck_simulation_status")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "agent_id"],
            ["agent.organization_id", "agent.id"],
            name=op.f("fk_simulation_organization_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_simulation_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_simulation")),
    )
    whose = ["organization_id", "agent_id", "created_at", "id"]
    op.create_index(op.f("ix_simulation_organization_id_agent_id_created_at_id"), "simulation", whose)
    op.create_index("ix_simulation_due", "simulation", ["due_at"], postgresql_where=sa.text("due_at is not null"))
    protect("simulation", system="select, update")


def downgrade() -> None:
    op.drop_table("simulation")
