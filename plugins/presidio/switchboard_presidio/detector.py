"""Detector `personal_data`: the REST API of Presidio's analyzer.

Source: Presidio's OpenAPI description, https://github.com/microsoft/presidio/blob/main/docs/api-docs/api-docs.yml
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

import aiohttp
from pydantic import BaseModel, Field, HttpUrl, JsonValue, StringConstraints, TypeAdapter, ValidationError
from switchboard.plugin_sdk import ProviderError, ProviderSettings, RemotePrivateDataDetector, SpokenText
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.languages import get_base_language

REQUEST_SECONDS: Final = 5.0
"""Time limit of a request of `check`. The platform waits for a search for a shorter time."""
MAX_RESPONSE_BYTES: Final = 2**20
MAX_MESSAGE_CHARACTERS: Final = 300

Entity = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=60)]
Language = Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]


class PresidioSettings(ProviderSettings):
    """Access to an analyzer, and what it searches for."""

    url: HttpUrl = Field(description="Address of the analyzer, such as http://presidio:3000.")
    entities: tuple[Entity, ...] = Field(
        ("PERSON", "LOCATION"), min_length=1, description="Entities of Presidio that are redacted."
    )
    languages: Mapping[str, Language] = Field(
        {"mul": "en"},
        description="Languages of agents, as BCP 47 or its first part, with the analyzer's code for each. Others are "
        "sent as their first part.",
    )
    score_threshold: float = Field(0.5, ge=0, le=1, description="Least confidence of what is redacted, from 0 to 1.")


class RecognizerResult(BaseModel):
    """One place of a text, in characters."""

    entity_type: str
    start: int
    end: int
    score: float


class Refusal(BaseModel):
    """The analyzer's answer to a request that it cannot serve."""

    error: str


ResponseT = TypeVar("ResponseT")
_RESULTS: Final = TypeAdapter(list[RecognizerResult])
_ENTITIES: Final = TypeAdapter(list[str])


class PresidioDetector(RemotePrivateDataDetector):
    """Personal data by Presidio's language models and patterns."""

    name = "personal_data"
    title = "Names, places, and other personal data that Presidio finds"
    Settings = PresidioSettings
    settings: PresidioSettings

    async def check(self) -> None:
        """Check that the analyzer knows the entities in each language."""
        for language in sorted(set(self.settings.languages.values())):
            body = await self._request("GET", "supportedentities", params={"language": language})
            known = _parse(_ENTITIES, body)
            if missing := sorted(set(self.settings.entities) - set(known)):
                message = f"Presidio does not find {', '.join(missing)} in language {language}"
                raise ProviderError(message, retryable=False)

    async def search(self, spoken: SpokenText) -> list[tuple[int, int]]:
        base, languages = get_base_language(spoken.language), self.settings.languages
        request: dict[str, JsonValue] = {
            "text": spoken.text,
            "language": languages.get(spoken.language) or languages.get(base) or base,
            "entities": list(self.settings.entities),
            "score_threshold": self.settings.score_threshold,
        }
        results = _parse(_RESULTS, await self._request("POST", "analyze", content=request))
        return [(result.start, result.end) for result in results]

    async def _request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, content: JsonValue = None
    ) -> bytes:
        url, timeout = f"{str(self.settings.url).rstrip('/')}/{path}", aiohttp.ClientTimeout(REQUEST_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(method, url, params=params, json=content, allow_redirects=False) as response,
            ):
                body = await response.content.read(MAX_RESPONSE_BYTES)
                if not response.content.at_eof():
                    raise ProviderError("Presidio's response is too long", retryable=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ProviderError(f"Presidio cannot be reached: {describe_connection_fault(error)}") from error
        if (status := response.status) == 200:
            return body
        try:
            message = Refusal.model_validate_json(body).error
        except ValidationError:
            message = "no reason given"
        retryable = status >= 500 or status == 429
        raise ProviderError(f"Presidio: {message[:MAX_MESSAGE_CHARACTERS]}", code=str(status), retryable=retryable)


def _parse(shape: TypeAdapter[ResponseT], body: bytes) -> ResponseT:
    try:
        return shape.validate_json(body)
    except ValidationError:
        raise ProviderError("Presidio's response has an unknown shape") from None
