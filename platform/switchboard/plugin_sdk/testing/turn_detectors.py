"""The contract of capability `turn_detector`."""

import asyncio
from typing import TypeVar

import pytest

from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract
from switchboard.plugin_sdk.turn_detectors import PossibleTurn, TurnDetector, TurnPrediction

AnyTurnDetector = TypeVar("AnyTurnDetector", bound=TurnDetector[ProviderSettings])
SECOND = b"\x00\x00" * 8000


class TurnDetectorContract(ProviderContract[AnyTurnDetector]):
    """Rules of every turn detector. Override `provider`."""

    @pytest.fixture
    def turn(self) -> PossibleTurn:
        """A pause with words and audio."""
        return PossibleTurn(SECOND, "I would like to book a table", agent_said="How can I help you?")

    async def test_a_prediction_is_a_probability(self, open_provider: AnyTurnDetector, turn: PossibleTurn) -> None:
        """If this fails, return a `TurnPrediction` with a probability from 0 to 1."""
        _assert_valid(await open_provider.predict(turn))

    @pytest.mark.parametrize("seconds", [0, 8])
    async def test_turns_of_every_length_are_judged(self, open_provider: AnyTurnDetector, seconds: int) -> None:
        """The audio may be empty, and has 8 seconds at most. If this fails, pad or cut it for your model."""
        _assert_valid(await open_provider.predict(PossibleTurn(SECOND * seconds)))

    @pytest.mark.parametrize("language", ["en-US", "sw", "mul"])
    async def test_every_language_is_judged(self, open_provider: AnyTurnDetector, language: str) -> None:
        """If this fails, return a probability of 0.5 in a language that your model does not know."""
        _assert_valid(await open_provider.predict(PossibleTurn(SECOND, "Well", "I", language=language)))

    async def test_calls_are_judged_concurrently(self, open_provider: AnyTurnDetector, turn: PossibleTurn) -> None:
        """Callers pause at the same time.

        If this fails, protect what your predictions share; you may raise `ProviderError` when there are too many.
        """
        for prediction in await asyncio.gather(*(open_provider.predict(turn) for _ in range(2))):
            _assert_valid(prediction)

    async def test_a_prediction_may_be_canceled(self, open_provider: AnyTurnDetector, turn: PossibleTurn) -> None:
        """The caller may go on before the answer. If this fails, do not break the detector on a cancellation."""
        asking = asyncio.ensure_future(open_provider.predict(turn))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        _assert_valid(await open_provider.predict(turn))


def _assert_valid(prediction: TurnPrediction) -> None:
    assert isinstance(prediction, TurnPrediction)
    assert 0 <= prediction.probability <= 1
    assert prediction.ask_again_seconds is None or prediction.ask_again_seconds > 0
