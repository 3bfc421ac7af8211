"""How many simulations an agent has, kept by triggers."""

from switchboard.migrations.tallies import tally, untally

revision = "0019"
down_revision = "0014"


def upgrade() -> None:
    tally("simulation", "agent_id")


def downgrade() -> None:
    untally("simulation")
