"""Texts that people write in the dashboard, and conversations by their latest text."""

from alembic import op

revision = "0022"
down_revision = "0021"
AUTHOR = "ck_sms_message_author"
LATEST = "ix_sms_conversation_organization_id_last_message_at_id"


def upgrade() -> None:
    op.drop_constraint(op.f(AUTHOR), "sms_message", type_="check")
    op.create_check_constraint(
        op.f(AUTHOR), "sms_message", "author in ('contact', 'api', 'agent', 'automation', 'person', 'platform')"
    )
    op.create_index(op.f(LATEST), "sms_conversation", ["organization_id", "last_message_at", "id"])


def downgrade() -> None:
    op.drop_index(op.f(LATEST), "sms_conversation")
    op.execute("update sms_message set author = 'api' where author = 'person'")
    op.drop_constraint(op.f(AUTHOR), "sms_message", type_="check")
    op.create_check_constraint(
        op.f(AUTHOR), "sms_message", "author in ('contact', 'api', 'agent', 'automation', 'platform')"
    )
