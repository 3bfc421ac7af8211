"""Index of the deliveries under a lease, which count toward their target's concurrency limit."""

from switchboard.migrations.indexes import create_index_concurrently

revision = "0051"
down_revision = "0050"
oldest_program = "0001"


def upgrade() -> None:
    create_index_concurrently(
        "ix_delivery_leased",
        "delivery",
        ["target_id", "due_at"],
        predicate="status = 'pending' and lease_token is not null",
    )
