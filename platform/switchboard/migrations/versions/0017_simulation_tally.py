"""How many simulations an agent has, kept by triggers."""

from switchboard.migrations.tallies import tally, untally

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    tally("simulation", "agent_id")


def downgrade() -> None:
    untally("simulation")
