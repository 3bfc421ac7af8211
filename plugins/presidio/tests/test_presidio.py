"""Presidio on the wire: the contract of the detector, its requests, and its errors."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from pydantic import HttpUrl, ValidationError
from switchboard.plugin_sdk import ProviderError, SpokenText
from switchboard.plugin_sdk.testing import RemotePrivateDataDetectorContract
from switchboard_presidio.detector import PresidioDetector, PresidioSettings

from tests.fixtures.free_ports import find_free_port
from tests.fixtures.presidio import Presidio

TEXT = SpokenText("My name is Ada Lovelace, and I live in Köln 🙂 near Ada.", "en-GB")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Presidio]:
    async with Presidio.listening(PERSON="Ada( Lovelace)?", LOCATION="Köln") as server:
        yield server


def create_detector(url: str, **settings: Any) -> PresidioDetector:
    detector = PresidioDetector()
    detector.settings = PresidioSettings(url=HttpUrl(url), **settings)
    return detector


class TestPresidio(RemotePrivateDataDetectorContract):
    @pytest.fixture
    def detector(self, server: Presidio) -> PresidioDetector:
        return create_detector(server.url)

    @pytest.fixture
    def away(self) -> PresidioDetector:
        return create_detector(f"http://127.0.0.1:{find_free_port()}")

    @pytest.fixture
    def sample(self) -> SpokenText:
        return TEXT


async def find_words(detector: PresidioDetector) -> list[str]:
    return [TEXT.text[start:end] for start, end in await detector.search(TEXT)]


async def test_places_are_characters(server: Presidio) -> None:
    assert await find_words(create_detector(server.url)) == ["Ada Lovelace", "Ada", "Köln"]


async def test_a_request_has_the_settings(server: Presidio) -> None:
    detector = create_detector(f"{server.url}/", entities=("LOCATION",), score_threshold=0.7)
    assert await find_words(detector) == ["Köln"]
    (request,) = server.requests
    assert (request.text, request.language, request.entities, request.score_threshold) == (
        TEXT.text, "en", ["LOCATION"], 0.7,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spoken", "sent"), [("de-AT", "de"), ("mul", "en"), ("gsw-CH", "de"), ("en-IE", "de"), ("en-US", "en")]
)
async def test_languages_are_mapped(server: Presidio, spoken: str, sent: str) -> None:
    detector = create_detector(server.url, languages={"mul": "en", "gsw": "de", "en-IE": "de"})
    await detector.search(SpokenText("Hello", spoken))
    assert server.requests[0].language == sent


async def test_check_names_entities_that_the_analyzer_does_not_find(server: Presidio) -> None:
    await create_detector(server.url).check()
    with pytest.raises(ProviderError, match="Presidio does not find UK_NHS in language en"):
        await create_detector(server.url, entities=("PERSON", "UK_NHS")).check()
    with pytest.raises(ProviderError, match="No matching recognizers"):
        await create_detector(server.url, languages={"mul": "fr"}).check()


async def test_an_error_has_the_reason_of_the_analyzer(server: Presidio) -> None:
    with pytest.raises(ProviderError, match="Presidio: No matching recognizers") as refused:
        await create_detector(server.url).search(SpokenText("Bonjour", "fr-FR"))
    assert refused.value.code == "500"
    server.failing = True
    with pytest.raises(ProviderError, match="Presidio: no reason given") as failed:
        await create_detector(server.url).search(TEXT)
    assert failed.value.retryable


@pytest.mark.parametrize("settings", [{"entities": ()}, {"entities": ("person",)}, {"languages": {"mul": "english"}}])
def test_invalid_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PresidioSettings(url=HttpUrl("http://127.0.0.1"), **settings)
