"""Smart Turn in a process of its own: the contract, the features, deaths, and too many questions."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from switchboard.plugin_sdk import PossibleTurn, ProviderError, ProviderSettings
from switchboard.plugin_sdk.testing import TurnDetectorContract
from switchboard_turn_smart import model
from switchboard_turn_smart.detector import SmartTurnDetector
from switchboard_turn_smart.features import compute_features
from switchboard_turn_smart.worker_process import MAX_WAITING, SHARED, WorkerProcess

from tests.fixtures.eventually import eventually

SECOND = bytes(16_000)
REFERENCE = {
    (0, 0): -0.1714,
    (5, 650): 0.325,
    (20, 700): 1.7809,
    (40, 790): 0.129,
    (79, 799): 0.0378,
    (12, 601): 0.5811,
}


@pytest_asyncio.fixture(scope="class", loop_scope="session")
async def kept_process() -> AsyncIterator[None]:
    """Let tests share a process, which loads the model for a second of the processor."""
    detector = SmartTurnDetector(ProviderSettings())
    await detector.open()
    yield
    await detector.close()


@pytest.mark.usefixtures("kept_process")
class TestSmartTurn(TurnDetectorContract[SmartTurnDetector]):
    @pytest.fixture
    def provider(self) -> SmartTurnDetector:
        return SmartTurnDetector(ProviderSettings())


@pytest.fixture
async def worker() -> AsyncIterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    await worker.close()


def test_features_are_those_of_the_model() -> None:
    """Reference values: `WhisperFeatureExtractor` of Transformers, as copied by Pipecat 1.14.0, of the same sweep."""
    seconds = np.arange(16_000) / 8000
    sweep = (8000 * np.sin(2 * np.pi * (200 + 300 * seconds) * seconds)).astype("<i2")
    features = compute_features(sweep.tobytes())
    assert features.shape == (80, 800)
    for (band, frame), value in REFERENCE.items():
        assert features[band, frame] == pytest.approx(value, abs=0.001)


async def test_a_process_that_is_killed_is_replaced(worker: WorkerProcess) -> None:
    before = await worker.predict(SECOND)
    assert worker.process_id is not None
    os.kill(worker.process_id, signal.SIGKILL)
    with pytest.raises(ProviderError, match="died"):
        await worker.predict(SECOND)
    assert await worker.predict(SECOND) == before


async def test_questions_that_would_wait_too_long_are_refused(worker: WorkerProcess) -> None:
    await worker.predict(SECOND)
    asked = [asyncio.ensure_future(worker.predict(SECOND)) for _ in range(MAX_WAITING + 2)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert any(isinstance(result, ProviderError) for result in results)
    assert sum(isinstance(result, float) for result in results) >= MAX_WAITING


async def test_organizations_share_one_process() -> None:
    first, second = (SmartTurnDetector(ProviderSettings()) for _ in range(2))
    await first.open()
    await second.open()
    await first.predict(PossibleTurn(SECOND))
    await first.close()
    await second.predict(PossibleTurn(SECOND))
    process_id = SHARED.process_id
    assert process_id is not None
    await second.close()
    await eventually(lambda: asyncio.to_thread(_is_running, process_id), lambda running: not running)


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_missing_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda _name: None)
    with pytest.raises(ProviderError, match="pip install --no-deps pipecat-ai"):
        await SmartTurnDetector(ProviderSettings()).open()
