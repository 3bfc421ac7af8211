"""Drafts of agents, the simulations that they must pass, and the version of the agent of a call."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from switchboard.migrations.tenancy import protect_table

revision = "0039"
down_revision = "0038"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "agent_draft",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("revision", sa.Uuid(), nullable=False),
        sa.Column("base_version", sa.Integer(), nullable=False),
        sa.Column("changes", JSONB(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "agent_id"],
            ["agent.organization_id", "agent.id"],
            name=op.f("fk_agent_draft_organization_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_agent_draft_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_draft")),
        sa.UniqueConstraint("organization_id", "agent_id", name=op.f("uq_agent_draft_organization_id_agent_id")),
    )
    protect_table("agent_draft")
    op.add_column("agent", sa.Column("required_simulations", JSONB(), server_default="[]", nullable=False))
    op.add_column("simulation", sa.Column("draft_revision", sa.Uuid(), nullable=True))
    op.add_column("call", sa.Column("agent_version", sa.Integer(), nullable=True))
