"""Files of inbound text messages."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0030"
down_revision = "0029"
oldest_program = "0001"


def upgrade() -> None:
    op.create_table(
        "sms_media",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("carrier_url", sa.String(), nullable=True),
        sa.Column("content_type", sa.String(), nullable=True),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("fetch_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_sms_media_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["sms_message.id"], name=op.f("fk_sms_media_message_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_media")),
    )
    op.create_index(op.f("ix_sms_media_organization_id_message_id"), "sms_media", ["organization_id", "message_id"])
    op.create_index(
        "ix_sms_media_fetch_due", "sms_media", ["fetch_due_at"], postgresql_where=sa.text("fetch_due_at is not null")
    )
    protect_table("sms_media", system="select")
