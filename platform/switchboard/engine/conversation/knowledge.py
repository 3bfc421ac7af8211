"""What an agent knows beyond its prompt: passages are put before the model's turn, and the model may look further by a tool."""

import asyncio
import re
from collections.abc import Coroutine, Sequence
from typing import Annotated, Protocol

import structlog
from pydantic import Field

from switchboard.plugin_sdk import (
    KNOWLEDGE,
    AgentTool,
    JsonObject,
    Message,
    ProviderError,
    ToolContext,
    ToolError,
    ToolParameters,
)

logger = structlog.get_logger()
RETRIEVAL_SECONDS = 0.5
"""A caller waits for the answer meanwhile: what has not come by then is not waited for."""
UNHURRIED_SECONDS = 10.0
"""Whoever texts can wait. The first search of a process takes seconds, so a call begins with one that nobody waits for."""
RETRIEVED_PASSAGES, SEARCHED_PASSAGES = 3, 5
MIN_WORDS = 2


class Knowledge(Protocol):
    """Finds the passages that fit a question best, best first. Raises `ProviderError`."""

    async def passages(self, question: str, *, limit: int) -> Sequence[str]: ...


async def retrieve_passages(
    knowledge: Knowledge | None, said: str, *, seconds: float = RETRIEVAL_SECONDS
) -> tuple[Message, ...]:
    """What the model is told before its turn: the passages that fit what was said, if there are any."""
    if knowledge is None or len(said.split()) < MIN_WORDS:
        return ()
    try:
        async with asyncio.timeout(seconds):
            passages = await knowledge.passages(said, limit=RETRIEVED_PASSAGES)
    except (ProviderError, TimeoutError) as error:
        logger.warning("answered without knowledge", reason=str(error) or "it took too long")
        return ()
    return (Message("system", "\n\n".join((KNOWLEDGE, *passages))),) if passages else ()


class KnowledgeRetrieval:
    """Recalling in a call. What the caller seems to have said is looked for while it is still being transcribed, so that the model need not wait.

    `hearing` is as much of it as has been transcribed so far.
    """

    def __init__(self, knowledge: Knowledge | None) -> None:
        self._knowledge = knowledge
        self.hearing = ""
        self._foreseen: tuple[list[str], asyncio.Future[tuple[Message, ...]]] | None = None

    def foresee(self) -> Coroutine[None, None, None] | None:
        """The work of recalling what fits what is heard, for a task of the caller's; `recalled` takes its result where nothing else was said."""
        if self._knowledge is None or not self.hearing:
            return None
        said = self.hearing
        found: asyncio.Future[tuple[Message, ...]] = asyncio.get_running_loop().create_future()
        self._foreseen = (_words(said), found)

        async def work() -> None:
            found.set_result(await retrieve_passages(self._knowledge, said))

        return work()

    async def recalled(self, said: str) -> tuple[Message, ...]:
        """As the function of this name does."""
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and foreseen[0] == _words(said):
            # Whoever waits may be interrupted; the work goes on to its end.
            return await asyncio.shield(foreseen[1])
        return await retrieve_passages(self._knowledge, said)


def _words(said: str) -> list[str]:
    """What is compared: a final transcript has punctuation and capitals that its interim ones lack."""
    return re.findall(r"\w+", said.casefold())


async def warm_up(knowledge: Knowledge) -> None:
    """Have what is needed for a search loaded by the time that the caller asks something."""
    await retrieve_passages(knowledge, "What is there?", seconds=UNHURRIED_SECONDS)


class KnowledgeQuestion(ToolParameters):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=1000, description="what to look for, as a whole question")]


class SearchKnowledge(AgentTool[KnowledgeQuestion]):
    """Looks something up in the agent's knowledge bases."""

    name = "search_knowledge"
    description = "Look something up in the knowledge bases, where what you were given does not answer the question."
    Parameters = KnowledgeQuestion

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    async def run(self, context: ToolContext, parameters: KnowledgeQuestion) -> JsonObject:
        try:
            return {"passages": list(await self._knowledge.passages(parameters.query, limit=SEARCHED_PASSAGES))}
        except ProviderError as error:
            raise ToolError(error.message) from error
