"""The contract of a turn detector, and tests of this plugin's own."""

from collections.abc import Callable

import pytest
from acme_vendor import create_settings
from switchboard.plugin_sdk import PossibleTurn
from switchboard.plugin_sdk.testing import TurnDetectorContract
from switchboard_acme import AcmeTurnDetector
from switchboard_acme.client import AcmeSettings


class TestAcmeTurnDetector(TurnDetectorContract[AcmeTurnDetector]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeTurnDetector:
        return AcmeTurnDetector(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeTurnDetector]:
        return lambda address: AcmeTurnDetector(create_settings(address))

    async def test_a_sentence_without_an_end_goes_on(self, open_provider: AcmeTurnDetector) -> None:
        assert (await open_provider.predict(PossibleTurn(b"", "I would like to"))).probability < 0.5
