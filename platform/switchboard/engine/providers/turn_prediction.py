"""Prediction of turns' ends by an organization's turn detectors, within a time limit. No call fails with them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from switchboard.engine.conversation.call import TurnJudgment
from switchboard.engine.providers.failover import FAILURES, RankedProvider
from switchboard.engine.providers.health import ServiceRecord
from switchboard.plugin_sdk import CheckedPart, PossibleTurn, ProviderError, ProviderSettings, TurnDetector

DEADLINE_SECONDS: Final = 0.15
"""Time that a prediction may take: no longer than a caller notices."""
MEASURED_PREDICTIONS: Final = 3
MEASURED_SECONDS: Final = 1.0
"""Longest time that a measured prediction is waited for."""
LONGEST_TURN: Final = bytes(8 * 16_000)
"""Silence as long as the longest audio of a `PossibleTurn`."""
TOO_SLOW: Final = (
    "Later predictions are not used: the words alone then decide when callers have finished. Give the servers more or "
    "faster cores, or set turn_detection of the agents to the mode text, which needs no predictions."
)


@dataclass(frozen=True, slots=True)
class DeadlineTurnPredictor:
    """Asks the first healthy detector, and no other: the next one would come too late."""

    detectors: Sequence[RankedProvider[TurnDetector[ProviderSettings]]]
    record: ServiceRecord

    async def predict(self, turn: PossibleTurn) -> TurnJudgment | None:
        """Return the prediction and the detector's name; None if there is none in time."""
        detector = next((candidate for candidate in self.detectors if not candidate.health.degraded), None)
        if detector is None:
            return None
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                prediction = await detector.provider.predict(turn)
        except FAILURES as failure:
            self.record.record_failure(detector.health, failure)
            return None
        self.record.record_success(detector.health)
        return TurnJudgment(prediction, detector.provider.name)


async def check_prediction_time(detector: TurnDetector[ProviderSettings]) -> CheckedPart:
    """Measure, by the median of a few predictions one after the other, whether a detector predicts in time for calls.

    Raises `ProviderError` if it does not predict.
    """
    taken = median([await _measure_prediction(detector) for _ in range(MEASURED_PREDICTIONS)])
    milliseconds = f"{taken * 1000:.0f}" if taken < MEASURED_SECONDS else f"more than {MEASURED_SECONDS * 1000:.0f}"
    message = f"A prediction takes {milliseconds} ms, of the {DEADLINE_SECONDS * 1000:.0f} ms that calls wait for it."
    is_in_time = taken < DEADLINE_SECONDS
    return CheckedPart("time of a prediction", is_in_time, message if is_in_time else f"{message} {TOO_SLOW}")


async def require_prediction_in_time(detector: TurnDetector[ProviderSettings]) -> None:
    """Raise `ProviderError` if a detector does not predict in time for calls."""
    part = await check_prediction_time(detector)
    if not part.works:
        raise ProviderError(part.message)


async def _measure_prediction(detector: TurnDetector[ProviderSettings]) -> float:
    """Return the seconds that a prediction takes, `MEASURED_SECONDS` at most."""
    began_at = time.perf_counter()
    try:
        async with asyncio.timeout(MEASURED_SECONDS):
            await detector.predict(PossibleTurn(LONGEST_TURN))
    except TimeoutError:
        return MEASURED_SECONDS
    return time.perf_counter() - began_at
