"""The machinery of background work under seeds, each with an order of statements and faults of its own."""

import os
import sys
from typing import Final

import pytest

from tests.interleavings.calls import CallStory
from tests.interleavings.deliveries import DeliveryStory
from tests.interleavings.simulation import Simulation

SEEDS: Final = int(os.environ.get("SIMULATION_SEEDS", "1000"))
CHUNK: Final = 50
SEED: Final = os.environ.get("SIMULATION_SEED")
"""A seed to play alone, with its trace."""


@pytest.mark.system
@pytest.mark.skipif(SEED is not None, reason="one seed is played alone")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_seeds_keep_the_promises(simulation: Simulation, first: int) -> None:
    outcomes = [simulation.play(seed) for seed in range(first, min(first + CHUNK, SEEDS))]
    failed = [outcome for outcome in outcomes if outcome.complaints]
    assert not failed, f"seeds {[outcome.seed for outcome in failed]} of {len(outcomes)} fail; the first:\n{failed[0]}"


@pytest.mark.system
@pytest.mark.skipif(SEED is None, reason="SEED names one")
def test_one_seed(simulation: Simulation) -> None:
    outcome = simulation.play(int(SEED or 0))
    sys.stdout.write(f"\n{outcome}\n")
    assert not outcome.complaints


@pytest.mark.system
def test_a_seed_repeats_exactly(simulation: Simulation) -> None:
    plays = [(seed, story) for seed in range(3) for story in (DeliveryStory, CallStory)]
    first = [simulation.play(seed, story).trace for seed, story in plays]
    again = [simulation.play(seed, story).trace for seed, story in reversed(plays)]
    assert again[::-1] == first
