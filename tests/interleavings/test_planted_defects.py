"""The simulation finds defects that the platform once had."""

from collections.abc import Callable
from typing import Final

import pytest

from tests.interleavings.planted import DEFECTS, PlantedDefect
from tests.interleavings.simulation import Simulation

MOST_SEEDS: Final = 150


@pytest.mark.system
@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
def test_planted_defects_are_found(
    simulation: Simulation,
    defect: PlantedDefect,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    defect.plant(monkeypatch)
    for seed in range(MOST_SEEDS):
        outcome = simulation.play(seed, defect.story)
        if any(complaint.startswith(defect.finding) for complaint in outcome.complaints):
            record_property("seeds", seed + 1)
            return
        assert not outcome.complaints, f"seed {seed} has another complaint: {outcome.complaints}"
    pytest.fail(f"{MOST_SEEDS} seeds do not find it")
