"""Retrieval from an agent's knowledge bases.

Passages that fit what the caller says are given to the model before its turn, and the model may search further with a
tool.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Protocol, TypeAlias

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
"""Time limit while a caller waits for the agent's answer; the agent then answers without passages."""
UNHURRIED_SECONDS = 10.0
"""Time limit for text messages and for the warm-up: the first search of a process takes seconds."""
RETRIEVED_PASSAGES, SEARCHED_PASSAGES = 3, 5
MIN_WORDS = 2

Context: TypeAlias = tuple[Message, ...]
TaskStarter: TypeAlias = Callable[[Callable[[], Awaitable[None]]], asyncio.Task[None] | None]
"""Starts a task of the call (`CallLifetime.start`)."""


class Knowledge(Protocol):
    """Finds the passages that fit a question best, best first. Raises `ProviderError`."""

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]: ...


async def retrieve_context(knowledge: Knowledge | None, text: str, *, seconds: float = RETRIEVAL_SECONDS) -> Context:
    """Return a system message with the passages that fit a text, or nothing if there are none."""
    if knowledge is None or len(text.split()) < MIN_WORDS:
        return ()
    try:
        async with asyncio.timeout(seconds):
            passages = await knowledge.find_passages(text, limit=RETRIEVED_PASSAGES)
    except (ProviderError, TimeoutError) as error:
        logger.warning("answered without knowledge", reason=str(error) or "it took too long")
        return ()
    return (Message("system", "\n\n".join((KNOWLEDGE, *passages))),) if passages else ()


class KnowledgeRetrieval:
    """Retrieval in a call, started while the caller's words are still being transcribed to save the model's wait.

    `interim_transcript` is what has been transcribed of the current utterance.
    """

    def __init__(self, knowledge: Knowledge | None) -> None:
        self._knowledge = knowledge
        self.interim_transcript = ""
        self._prefetched: tuple[list[str], asyncio.Future[Context]] | None = None

    def prefetch(self, start: TaskStarter) -> None:
        """Start a task that retrieves the context of the interim transcript."""
        if self._knowledge is None or not self.interim_transcript:
            return
        text = self.interim_transcript
        found: asyncio.Future[Context] = asyncio.get_running_loop().create_future()
        self._prefetched = (_split_words(text), found)

        async def fetch() -> None:
            found.set_result(await retrieve_context(self._knowledge, text))

        start(fetch)

    async def retrieve(self, text: str) -> Context:
        """Return the context of a final transcript: the one that was retrieved last if its words are the same."""
        words, last = _split_words(text), self._prefetched
        if last is None or last[0] != words:
            found: asyncio.Future[Context] = asyncio.get_running_loop().create_future()
            found.set_result(await retrieve_context(self._knowledge, text))
            last = self._prefetched = (words, found)
        # An interruption cancels the waiting task, and the retrieval runs to its end.
        return await asyncio.shield(last[1])


def _split_words(text: str) -> list[str]:
    """Return the words to compare: a final transcript has punctuation and capitals that interim ones lack."""
    return re.findall(r"\w+", text.casefold())


async def warm_up(knowledge: Knowledge) -> None:
    """Load what a search needs before the caller asks something."""
    await retrieve_context(knowledge, "What is there?", seconds=UNHURRIED_SECONDS)


class KnowledgeQuestion(ToolParameters):
    """Parameters of `search_knowledge`."""

    query: Annotated[str, Field(min_length=1, max_length=1000, description="what to look for, as a whole question")]


class SearchKnowledge(AgentTool[KnowledgeQuestion]):
    """Searches the agent's knowledge bases."""

    name = "search_knowledge"
    description = "Look something up in the knowledge bases, where what you were given does not answer the question."
    Parameters = KnowledgeQuestion

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    async def run(self, context: ToolContext, parameters: KnowledgeQuestion) -> JsonObject:
        try:
            return {"passages": list(await self._knowledge.find_passages(parameters.query, limit=SEARCHED_PASSAGES))}
        except ProviderError as error:
            raise ToolError(error.message) from error
