"""Voices and models that providers offer, for people to choose from. A provider that does not answer is skipped after a
short timeout.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.plugin_sdk import LLMProvider, ProviderError, ProviderSettings, TextToSpeechProvider, Voice

logger = structlog.get_logger()
VOICE_SECONDS: Final = 2.0
MODEL_SECONDS: Final = 5.0
KNOWN_SECONDS: Final = 600.0
AWAY_SECONDS: Final = 60.0
"""Time during which a provider that did not answer is not asked again."""

Speaker = TextToSpeechProvider[ProviderSettings]
AnswerT = TypeVar("AnswerT")


class VoiceCatalog:
    """Cached knowledge about providers' voices.

    Existing voices are cached; missing ones are checked again each time.
    """

    def __init__(self, providers: Providers) -> None:
        self._providers = providers
        # Keyed by instance: changed settings create a new instance, about which nothing is known.
        self._known: WeakKeyDictionary[Speaker, dict[str, float]] = WeakKeyDictionary()
        self._lists: WeakKeyDictionary[Speaker, tuple[float, Sequence[Voice]]] = WeakKeyDictionary()
        self._away: dict[tuple[UUID, str], float] = {}

    async def list_voices(self, organization_id: UUID, provider: str) -> Sequence[Voice]:
        """List the voices of one of the organization's providers; none if it does not answer."""

        async def list_known(speaker: Speaker) -> Sequence[Voice]:
            until, known = self._lists.get(speaker, (0.0, ()))
            if until < time.monotonic():
                known = await speaker.list_voices()
                self._lists[speaker] = (time.monotonic() + KNOWN_SECONDS, known)
            return known

        return await self._ask(organization_id, provider, list_known, ())

    async def lacks_voice(self, organization_id: UUID, provider: str, voice_id: str) -> bool:
        """Return whether a provider of the organization answers and has no such voice."""

        async def is_missing(speaker: Speaker) -> bool:
            known = self._known.setdefault(speaker, {})
            if known.get(voice_id, 0.0) > time.monotonic():
                return False
            if has := await speaker.has_voice(voice_id):
                known[voice_id] = time.monotonic() + KNOWN_SECONDS
            return not has

        return await self._ask(organization_id, provider, is_missing, False)

    async def _ask(
        self,
        organization_id: UUID,
        provider: str,
        question: Callable[[Speaker], Awaitable[AnswerT]],
        otherwise: AnswerT,
    ) -> AnswerT:
        key = (organization_id, provider)
        if self._away.get(key, 0.0) > time.monotonic():
            return otherwise
        try:
            async with (
                asyncio.timeout(VOICE_SECONDS),
                self._providers.use(organization_id, TextToSpeechProvider, provider) as speaker,
            ):
                return await question(speaker)
        except (ProviderError, TimeoutError) as error:
            logger.warning("voices could not be listed", provider=provider, reason=str(error) or "no answer in time")
            self._away[key] = time.monotonic() + AWAY_SECONDS
            return otherwise


async def list_offered_models(providers: Providers, organization_id: UUID, provider: str) -> Sequence[str]:
    """List valid values of an agent's `llm_model` for one of the organization's providers, as far as it lists them."""
    try:
        async with asyncio.timeout(MODEL_SECONDS), providers.use(organization_id, LLMProvider, provider) as found:
            return await found.list_models()
    except (ProviderError, TimeoutError) as error:
        logger.warning("models could not be listed", provider=provider, reason=str(error) or "no answer in time")
        return ()
