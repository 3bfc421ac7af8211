"""Prediction of turns' ends by an organization's turn detectors, within a time limit. No call fails with them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from switchboard.engine.conversation.call import TurnJudgment
from switchboard.engine.providers.failover import FAILURES, RankedProvider
from switchboard.engine.providers.service_record import ServiceRecord
from switchboard.plugin_sdk import PossibleTurn, ProviderSettings, TurnDetector

DEADLINE_SECONDS: Final = 0.15
"""Time that a prediction may take: no longer than a caller notices."""


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
