"""Calls are looked for by whom they were with."""

from alembic import op

revision = "0024"
down_revision = "0023"
NUMBERS = ("from_number", "to_number")


def upgrade() -> None:
    for number in NUMBERS:
        op.create_index(
            op.f(f"ix_call_organization_id_{number}_created_at"), "call", ["organization_id", number, "created_at"]
        )


def downgrade() -> None:
    for number in NUMBERS:
        op.drop_index(op.f(f"ix_call_organization_id_{number}_created_at"), "call")
