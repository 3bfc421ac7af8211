"""Names of users in transcripts, roles, and conversations that users share out and read."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect_table

revision = "0040"
down_revision = "0039"
oldest_program = "0001"


ROLES = "role in ('owner', 'builder', 'member', 'agent', 'viewer')"


def upgrade() -> None:
    for table in ("membership", "invitation"):
        op.drop_constraint(op.f(f"ck_{table}_role"), table, type_="check")
        op.create_check_constraint(op.f(f"ck_{table}_role"), table, ROLES)
    op.add_column("agent", sa.Column("queue_wait_seconds", sa.Integer(), nullable=True))
    op.add_column("agent", sa.Column("queue_fallback", sa.Text(), nullable=False, server_default="agent"))
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
    op.create_table(
        "call_queue_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("handled_by", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("callback_of", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_call_queue_entry_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call_queue_entry")),
        sa.ForeignKeyConstraint(
            ["organization_id", "call_id"],
            ["call.organization_id", "call.id"],
            name=op.f("fk_call_queue_entry_organization_id_call_id"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "status in ('waiting', 'answered', 'expired', 'abandoned', 'callback', 'called_back', 'calling')",
            name=op.f("ck_call_queue_entry_status"),
        ),
    )
    op.create_index(
        "ix_call_queue_entry_open",
        "call_queue_entry",
        ["organization_id", "status", "created_at"],
        postgresql_where=sa.text("status in ('waiting', 'calling', 'callback')"),
    )
    op.create_index(
        op.f("ix_call_queue_entry_organization_id_call_id"), "call_queue_entry", ["organization_id", "call_id"]
    )
    protect_table("call_queue_entry", system="select, update")
    op.create_table(
        "queue_attendant",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_queue_attendant_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queue_attendant")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_queue_attendant_user_id"), ondelete="CASCADE"
        ),
        sa.UniqueConstraint("organization_id", "user_id", name=op.f("uq_queue_attendant_organization_id_user_id")),
    )
    op.create_index(op.f("ix_queue_attendant_user_id"), "queue_attendant", ["user_id"])
    protect_table("queue_attendant")
