"""The tables of docs/plugins/containment.md: each fault, in each capability, has the outcome that the page says."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue
from switchboard.engine.providers.plugin_processes.plugin_process import ProcessLimits
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.registry import Capability

from tests.fixtures.servers import REPOSITORY
from tests.plugin_processes.faults import CAPABILITIES, create_factory, create_faulty, use

PAGE = REPOSITORY / "docs/plugins/containment.md"
LIMITS = ProcessLimits(memory_bytes=300 * 1024**2, silence_seconds=1.5)
HANGS_SECONDS = 1.0
# By the first column of the tables: the faulty plugin's settings.
FAULTS: dict[str, dict[str, JsonValue]] = {
    "raises in the constructor": {"fault": "raise", "place": "constructor"},
    "raises in `open`": {"fault": "raise", "place": "open"},
    "raises when it is asked": {"fault": "raise", "place": "call"},
    "raises in its stream": {"fault": "raise", "place": "stream"},
    "raises in `close`": {"fault": "raise", "place": "close"},
    "refuses (`ProviderError`)": {"fault": "refuse", "place": "call"},
    "waits forever": {"fault": "hang", "place": "call"},
    "waits forever in its stream": {"fault": "hang", "place": "stream"},
    "returns nonsense": {"fault": "garbage"},
    "returns without end": {"fault": "endless"},
    "blocks the event loop": {"fault": "block", "place": "call"},
    "leaks memory": {"fault": "leak", "place": "call"},
    "ends the process": {"fault": "exit", "place": "call"},
    "ends the process in its stream": {"fault": "exit", "place": "stream"},
    "forks, and ends the process": {"fault": "fork", "place": "call"},
}
# By the words of the cells: part of the failure's message. None: there is no failure.
OUTCOMES = {
    "failure": r"^Faulty failed: .* of - -",
    "refusal": "^no credit left$",
    "lost process": r"^Faulty failed: the process of - - |^Faulty failed: MemoryError",
    "time limit": "",
    "works": None,
}
UNTESTED = ("every call", "–")
"""Cells of faults that would be the tests' own: they delay, or end, every call of the process."""
EACH_SHAPE = (Capability.LLM, Capability.SPEECH_TO_TEXT, Capability.EMBEDDING)
"""Capabilities whose methods return a stream, a transcription, and a value."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One outcome of the page."""

    fault: str
    process: str
    capability: Capability
    outcome: str

    def __str__(self) -> str:
        return f"{self.process} {self.capability} {self.fault}".replace("`", "")


def read_cells() -> Iterator[Cell]:
    """Yield every cell of the page's tables of faults."""
    process = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("### "):
            process = "own" if "of its own" in line else "shared"
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if process and cells[0] in FAULTS:
            for capability, outcome in zip(CAPABILITIES, cells[1:], strict=True):
                yield Cell(cells[0], process, capability, outcome)


CELLS = list(read_cells())


def is_tested(cell: Cell) -> bool:
    """Return whether a cell is tested: those that only cross the socket are, for one capability of each shape."""
    crosses = cell.process == "own" and cell.outcome != "lost process"
    return cell.outcome not in UNTESTED and (not crosses or cell.capability in EACH_SHAPE)


def create_parameter(cell: Cell) -> pytest.ParameterSet:
    """Return a cell to test, by `make system` if it starts a process, as the cell of a language model does already."""
    starts_another = cell.process == "own" and cell.capability is not Capability.LLM
    return pytest.param(cell, marks=[pytest.mark.system] if starts_another else [], id=str(cell))


def test_the_tables_have_every_fault() -> None:
    assert {(cell.fault, cell.process) for cell in CELLS} == {
        (fault, process) for fault in FAULTS for process in ("shared", "own")
    }
    assert {cell.outcome for cell in CELLS} == {*OUTCOMES, *UNTESTED}


@pytest.mark.parametrize("cell", [create_parameter(cell) for cell in CELLS if is_tested(cell)])
async def test_a_fault_has_the_outcome_of_the_page(cell: Cell, tmp_path: Path) -> None:
    pattern = OUTCOMES[cell.outcome]
    if pattern is None:
        await _use_once(cell, tmp_path)
    elif cell.outcome == "time limit":
        with pytest.raises(TimeoutError):
            await _use_once(cell, tmp_path)
    else:
        with pytest.raises(ProviderError, match=pattern):
            await _use_once(cell, tmp_path)


async def _use_once(cell: Cell, folder: Path) -> None:
    provider = create_faulty(create_factory(folder, LIMITS), cell.capability, FAULTS[cell.fault], process=cell.process)
    try:
        await provider.open()
        # A caller's own time limit, where the plugin only waits; elsewhere the machine may be busy.
        async with asyncio.timeout(HANGS_SECONDS if cell.outcome == "time limit" else 60):
            await use(provider)
    finally:
        with suppress(ProviderError):
            await provider.close()
