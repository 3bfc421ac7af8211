"""Turn detector `smart_turn`."""

from switchboard.plugin_sdk import PossibleTurn, ProviderError, ProviderSettings, TurnDetector, TurnPrediction

from switchboard_turn_smart.model import find_model
from switchboard_turn_smart.worker_process import SHARED, WorkerProcess

ONE_SECOND = bytes(16_000)


class SmartTurnDetector(TurnDetector[ProviderSettings]):
    """Smart Turn 3.2 in one process beside the server, which all organizations share."""

    name = "smart_turn"
    title = "Smart Turn"
    is_default = find_model() is not None
    _worker: WorkerProcess | None = None

    async def open(self) -> None:
        """Let the process start. Predictions wait until it has loaded the model."""
        if find_model() is None:
            message = "the model is not installed: pip install --no-deps pipecat-ai==1.14.0"
            raise ProviderError(message, retryable=False)
        self._worker = SHARED.acquire()

    async def close(self) -> None:
        """Let the process end, unless another organization uses it."""
        if self._worker is not None:
            self._worker = None
            await SHARED.release()

    async def check(self) -> None:
        """Judge a second of silence."""
        await self.predict(PossibleTurn(ONE_SECOND))

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        if self._worker is None:
            raise ProviderError("the detector is not open")
        return TurnPrediction(await self._worker.predict(turn.audio or ONE_SECOND))
