"""The simulation finds defects that the platform once had."""

import sys
from typing import Final

import pytest

from tests.interleavings.planted import DEFECTS, PlantedDefect
from tests.interleavings.simulation import Simulation

MOST_SEEDS: Final = 600


@pytest.mark.system
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
def test_planted_defects_are_found(
    simulation: Simulation, defect: PlantedDefect, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.plant(monkeypatch)
    for seed in range(MOST_SEEDS):
        outcome = simulation.play(seed, defect.story)
        if any(complaint.startswith(defect.finding) for complaint in outcome.complaints):
            sys.stdout.write(f"{defect.name}: {seed + 1} seeds\n")  # pytest -rP shows it
            return
        assert not outcome.complaints, f"seed {seed} has another complaint: {outcome.complaints}"
    pytest.fail(f"{MOST_SEEDS} seeds do not find it")
