"""Turn detectors: the default one of organizations that have chosen none, and predictions of turns' ends within a time
limit. No call fails with them.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from switchboard.engine.conversation.call import TurnJudgment
from switchboard.engine.providers.failover import FAILURES, RankedProvider
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.models import ProviderConfiguration, StoredConfiguration
from switchboard.plugin_sdk import (
    CheckedPart,
    PossibleTurn,
    ProviderError,
    ProviderSettings,
    SimulatedCarrier,
    SpeechToTextProvider,
    TelephonyProvider,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import Capability, Registry

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


def find_default_detector(
    registry: Registry, providers: Iterable[ProviderConfiguration | StoredConfiguration]
) -> type[TurnDetector[ProviderSettings]] | None:
    """Return the detector that judges calls over these providers of an organization, although it is not among them.

    None if one of them is a turn detector, if no plugin has a default one, or if the callers are not people: the
    carriers simulate them, or the transcribers are for demonstrations.
    """
    names: dict[str, list[str]] = {}
    for each in providers:
        names.setdefault(each.capability, []).append(each.name)
    carriers = [registry.find_provider_class(TelephonyProvider, name) for name in names.get(Capability.TELEPHONY, ())]
    transcribers = [
        registry.find_provider_class(SpeechToTextProvider, name) for name in names.get(Capability.SPEECH_TO_TEXT, ())
    ]
    if (
        Capability.TURN_DETECTOR in names
        or all(kind is None or issubclass(kind, SimulatedCarrier) for kind in carriers)
        or all(kind is None or kind.for_demonstrations for kind in transcribers)
    ):
        return None
    return get_default_detector(registry)


def get_default_detector(registry: Registry) -> type[TurnDetector[ProviderSettings]] | None:
    """Return the default detector of the installed plugins; None without one."""
    return next((kind for kind in registry.list_provider_classes(TurnDetector) if kind.is_default), None)


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
