"""What an agent knows beyond its prompt: passages are put before the model's turn, and the model may look further by a tool."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Protocol

import structlog
from pydantic import Field

from switchboard.plugins import KNOWLEDGE, AgentTool, JsonObject, Message, ProviderError, ToolContext, ToolError, ToolParameters

logger = structlog.get_logger()
RECALL_SECONDS = 0.5
"""A caller waits for the answer meanwhile: what has not come by then is not waited for."""
PATIENT_SECONDS = 10.0
"""Whoever texts can wait. The first search of a process takes seconds, so a call begins with one that nobody waits for."""
RECALLED, SEARCHED = 3, 5
FEWEST_WORDS = 2


class Knowledge(Protocol):
    """Finds the passages that fit a question best, best first. Raises `ProviderError`."""

    async def passages(self, question: str, *, limit: int) -> Sequence[str]: ...


async def recalled(knowledge: Knowledge | None, said: str, *, seconds: float = RECALL_SECONDS) -> tuple[Message, ...]:
    """What the model is told before its turn: the passages that fit what was said, if there are any."""
    if knowledge is None or len(said.split()) < FEWEST_WORDS:
        return ()
    try:
        async with asyncio.timeout(seconds):
            passages = await knowledge.passages(said, limit=RECALLED)
    except (ProviderError, TimeoutError) as error:
        logger.warning("answered without knowledge", reason=str(error) or "it took too long")
        return ()
    return (Message("system", "\n\n".join((KNOWLEDGE, *passages))),) if passages else ()


async def warm_up(knowledge: Knowledge) -> None:
    """Have what is needed for a search loaded by the time that the caller asks something."""
    await recalled(knowledge, "What is there?", seconds=PATIENT_SECONDS)


class Question(ToolParameters):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=1000, description="what to look for, as a whole question")]


class SearchKnowledge(AgentTool[Question]):
    """Looks something up in the agent's knowledge bases."""

    name = "search_knowledge"
    description = "Look something up in the knowledge bases, where what you were given does not answer the question."
    Parameters = Question

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    async def run(self, context: ToolContext, parameters: Question) -> JsonObject:
        try:
            return {"passages": list(await self._knowledge.passages(parameters.query, limit=SEARCHED))}
        except ProviderError as error:
            raise ToolError(error.message) from error
