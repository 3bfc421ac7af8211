"""Texts and their conversations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from switchboard.migrations.tenancy import protect

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "sms_conversation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phone_number_id", sa.Uuid(), nullable=False),
        sa.Column("contact_number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("last_message_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reply_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answering_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer_attempts", sa.Integer(), nullable=False),
        sa.CheckConstraint("status in ('open', 'closed')", name=op.f("ck_sms_conversation_status")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_sms_conversation_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "phone_number_id"],
            ["phone_number.organization_id", "phone_number.id"],
            name=op.f("fk_sms_conversation_organization_id_phone_number_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_conversation")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_sms_conversation_organization_id_id")),
        sa.UniqueConstraint(
            "organization_id",
            "phone_number_id",
            "contact_number",
            name=op.f("uq_sms_conversation_organization_id_phone_number_id_contact_number"),
        ),
    )
    op.create_index(
        op.f("ix_sms_conversation_organization_id_created_at_id"),
        "sms_conversation",
        ["organization_id", "created_at", "id"],
    )
    op.create_index(
        "ix_sms_conversation_reply_due",
        "sms_conversation",
        ["reply_due_at"],
        postgresql_where=sa.text("reply_due_at is not null"),
    )
    op.create_table(
        "sms_message",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("from_number", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("media_urls", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("segments", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Numeric(14, 6), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("carrier_text_id", sa.Text(), nullable=True),
        sa.Column("watch_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("direction in ('inbound', 'outbound')", name=op.f("ck_sms_message_direction")),
        sa.CheckConstraint(
            "status in ('queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed', 'received')",
            name=op.f("ck_sms_message_status"),
        ),
        sa.CheckConstraint("author in ('contact', 'api', 'agent', 'platform')", name=op.f("ck_sms_message_author")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f("fk_sms_message_organization_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["organization_id", "conversation_id"],
            ["sms_conversation.organization_id", "sms_conversation.id"],
            name=op.f("fk_sms_message_organization_id_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sms_message")),
    )
    op.create_index(
        op.f("ix_sms_message_organization_id_conversation_id_created_at_id"),
        "sms_message",
        ["organization_id", "conversation_id", "created_at", "id"],
    )
    op.create_index(
        "ix_sms_message_watched", "sms_message", ["watch_at"], postgresql_where=sa.text("watch_at is not null")
    )
    op.create_index(
        "uq_sms_message_carrier",
        "sms_message",
        ["organization_id", "carrier", "carrier_text_id"],
        unique=True,
        postgresql_where=sa.text("carrier_text_id is not null"),
    )
    protect("sms_conversation", system="select")
    protect("sms_message", system="select")


def downgrade() -> None:
    op.drop_table("sms_message")
    op.drop_table("sms_conversation")
