"""Languages of users and organizations, and organizations' logos."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0046"
down_revision = "0045"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("user_account", sa.Column("language", sa.String(), nullable=True))
    op.add_column("organization", sa.Column("language", sa.String(), nullable=True))
    op.add_column("organization", sa.Column("logo_digest", sa.String(), nullable=True))
    op.execute("grant update (language, logo_digest) on organization to switchboard_tenant")
    op.create_table(
        "organization_logo",
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_organization_logo_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", name=op.f("pk_organization_logo")),
    )
    protect_table("organization_logo")
