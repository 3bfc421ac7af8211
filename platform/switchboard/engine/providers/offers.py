"""Models that a provider offers, for people to choose from. A provider that does not answer offers none, after a short
timeout.
"""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.plugin_sdk import LLMProvider, ProviderError

logger = structlog.get_logger()
ANSWER_SECONDS: Final = 5.0


async def list_offered_models(providers: Providers, organization_id: UUID, provider: str) -> Sequence[str]:
    """List valid values of an agent's `llm_model` for one of the organization's providers, as far as it lists them."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS), providers.use(organization_id, LLMProvider, provider) as found:
            return await found.list_models()
    except (ProviderError, TimeoutError) as error:
        logger.warning("models could not be listed", provider=provider, reason=str(error) or "no answer in time")
        return ()
