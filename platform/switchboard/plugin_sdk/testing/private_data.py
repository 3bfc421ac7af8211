"""The contract of capability `private_data_detector`."""

import time

import pytest

from switchboard.plugin_sdk.private_data import PrivateDataDetector, SpokenText
from switchboard.plugin_sdk.testing.contract import ExtensionContract

MOST_SECONDS = 0.05


class PrivateDataDetectorContract(ExtensionContract):
    """Rules of every detector of private data. Override `detector` and `sample`."""

    @pytest.fixture
    def detector(self) -> PrivateDataDetector:
        """The detector under test, with its settings if it has any. Must be overridden."""
        raise NotImplementedError("override the fixture `detector` of this contract")

    @pytest.fixture
    def sample(self) -> SpokenText:
        """A text with private data of the kind. Must be overridden."""
        raise NotImplementedError("override the fixture `sample` of this contract")

    @pytest.fixture
    def extension(self, detector: PrivateDataDetector) -> PrivateDataDetector:
        """The detector."""
        return detector

    async def test_it_has_a_name_and_a_title(self, detector: PrivateDataDetector) -> None:
        """Agents choose it by its name. If this fails, set the class attributes `name` and `title`."""
        assert detector.name == detector.name.strip().lower() != ""
        assert detector.title.strip()

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
