"""Names of users in transcripts, and conversations that users share out and read."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0040"
down_revision = "0038"
oldest_program = "0001"


def upgrade() -> None:
    op.add_column("transcript_line", sa.Column("person", sa.Text(), nullable=True))
    for name in ("resolved_at", "waiting_since", "last_inbound_at"):
        op.add_column("sms_conversation", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("sms_conversation", sa.Column("assigned_to", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        op.f("fk_sms_conversation_organization_id_assigned_to"),
        "sms_conversation",
        "membership",
        ["organization_id", "assigned_to"],
        ["organization_id", "user_id"],
        ondelete="SET NULL (assigned_to)",
    )
    op.create_table(
        "sms_conversation_reader",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_sms_conversation_reader_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "conversation_id"],
            ["sms_conversation.organization_id", "sms_conversation.id"],
            name=op.f("fk_sms_conversation_reader_organization_id_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_sms_conversation_reader_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_conversation_reader")),
        sa.UniqueConstraint(
            "organization_id",
            "conversation_id",
            "user_id",
            name=op.f("uq_sms_conversation_reader_organization_id_conversation_id_user_id"),
        ),
    )
    op.create_index(op.f("ix_sms_conversation_reader_user_id"), "sms_conversation_reader", ["user_id"])
    protect_table("sms_conversation_reader")
