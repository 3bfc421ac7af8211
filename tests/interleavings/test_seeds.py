"""The machinery of background work under seeds, each with an order of statements and faults of its own."""

import os
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry

from tests.interleavings.simulation import Simulation, open_simulation

SEEDS: Final = int(os.environ.get("SIMULATION_SEEDS", "1000"))
CHUNK: Final = 50
SEED: Final = os.environ.get("SIMULATION_SEED")
"""A seed to play alone, with its trace."""


@pytest.fixture(scope="module")
def simulation(servers: DataDirectory, registry: Registry, default_settings: Settings) -> Iterator[Simulation]:
    """The simulation, whose seeds share their connections."""
    with open_simulation(servers, registry, default_settings) as simulation:
        yield simulation


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
    first = [simulation.play(seed) for seed in range(5)]
    again = [simulation.play(seed) for seed in reversed(range(5))]
    assert [outcome.trace for outcome in reversed(again)] == [outcome.trace for outcome in first]
