"""The contracts of capability `private_data_detector`."""

import asyncio
import time
from typing import Generic, TypeVar

import pytest

from switchboard.plugin_sdk.private_data import PrivateDataDetector, RemotePrivateDataDetector, SpokenText
from switchboard.plugin_sdk.provider import ProviderError
from switchboard.plugin_sdk.testing.contract import ExtensionContract

MOST_SECONDS = 0.05
AnyDetector = TypeVar("AnyDetector", bound=PrivateDataDetector)


class DetectorRules(ExtensionContract, Generic[AnyDetector]):
    """Rules of every detector of private data, with and without a service."""

    @pytest.fixture
    def sample(self) -> SpokenText:
        """A text with private data of the kind. Must be overridden."""
        raise NotImplementedError("override the fixture `sample` of this contract")

    @pytest.fixture
    def detector(self) -> AnyDetector:
        """The detector under test, with its settings if it has any. Must be overridden."""
        raise NotImplementedError("override the fixture `detector` of this contract")

    @pytest.fixture
    def extension(self, detector: AnyDetector) -> AnyDetector:
        return detector


class PrivateDataDetectorContract(DetectorRules[PrivateDataDetector]):
    """Rules of every detector of private data. Override `detector` and `sample`."""

    async def test_it_finds_places_of_the_text(self, detector: PrivateDataDetector, sample: SpokenText) -> None:
        """Each place is a start and an end in the text. If this fails, return what `re.Match.span` returns."""
        found = list(detector.find(sample))
        assert found
        assert all(0 <= start < end <= len(sample.text) for start, end in found)

    async def test_it_finds_the_same_again(self, detector: PrivateDataDetector, sample: SpokenText) -> None:
        """Interim transcripts have the same text many times. If this fails, keep nothing between calls."""
        assert list(detector.find(sample)) == list(detector.find(sample))

    @pytest.mark.parametrize("text", ["", " ", "…", "ja"])
    async def test_it_finds_nothing_where_nothing_is(self, detector: PrivateDataDetector, text: str) -> None:
        """Each place is redacted. If this fails, let it find less."""
        assert list(detector.find(SpokenText(text, "mul"))) == []

    async def test_a_long_text_is_searched_at_once(self, detector: PrivateDataDetector, sample: SpokenText) -> None:
        """It runs in the event loop of live calls. If this fails, look for a pattern that backtracks."""
        started = time.perf_counter()
        list(detector.find(SpokenText(f"{sample.text} " * (1600 // (len(sample.text) + 1) + 1), sample.language)))
        assert time.perf_counter() - started < MOST_SECONDS


class RemotePrivateDataDetectorContract(DetectorRules[RemotePrivateDataDetector]):
    """Rules of every detector that asks a service. Override `detector` with the settings of a server that answers,
    `away` with the settings of a server that does not, and `sample`.
    """

    @pytest.fixture
    def away(self) -> RemotePrivateDataDetector:
        """The detector with a server that does not answer. Must be overridden."""
        raise NotImplementedError("override the fixture `away` of this contract")

    async def test_it_finds_places_of_the_text(self, detector: RemotePrivateDataDetector, sample: SpokenText) -> None:
        """Each place is a start and an end in the text. If this fails, convert the service's own offsets."""
        found = list(await detector.search(sample))
        assert found
        assert all(0 <= start < end <= len(sample.text) for start, end in found)

    async def test_simultaneous_searches_do_not_mix(
        self, detector: RemotePrivateDataDetector, sample: SpokenText
    ) -> None:
        """Interim transcripts follow each other closely. If this fails, keep nothing between searches."""
        both = await asyncio.gather(detector.search(sample), detector.search(SpokenText("…", sample.language)))
        assert [bool(list(found)) for found in both] == [True, False]

    async def test_a_search_can_be_canceled(self, detector: RemotePrivateDataDetector, sample: SpokenText) -> None:
        """The platform cancels a search that is late. If this fails, do not catch `CancelledError`."""
        search = asyncio.ensure_future(detector.search(sample))
        await asyncio.sleep(0)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search

    async def test_a_service_that_is_away_is_a_provider_error(
        self, away: RemotePrivateDataDetector, sample: SpokenText
    ) -> None:
        """The platform leaves it alone for a while. If this fails, convert the client's own exceptions."""
        with pytest.raises(ProviderError):
            await away.search(sample)
        with pytest.raises(ProviderError):
            await away.check()

    async def test_nothing_is_found_without_the_service(
        self, detector: RemotePrivateDataDetector, sample: SpokenText
    ) -> None:
        """`find` runs in the event loop of live calls. If this fails, let it find what is certain and cheap only."""
        started = time.perf_counter()
        assert all(0 <= start < end <= len(sample.text) for start, end in detector.find(sample))
        assert time.perf_counter() - started < MOST_SECONDS
