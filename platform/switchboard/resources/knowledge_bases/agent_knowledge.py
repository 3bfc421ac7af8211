"""The knowledge of an agent in a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.search import search_in
from switchboard.runtime import Runtime


@dataclass(frozen=True, slots=True)
class AgentKnowledge:
    """What an agent's knowledge bases hold (`conversation.knowledge.Knowledge`); one that was deleted since is passed over.

    What searching uses is added to `usage`, for whoever pays for the conversation.
    """

    runtime: Runtime
    organization_id: UUID
    knowledge_base_ids: Sequence[str]
    usage: list[ModelUsage]

    async def passages(self, question: str, *, limit: int) -> Sequence[str]:
        async with self.runtime.database.tenant(self.organization_id) as session:
            bases = [base for base in await knowledge.chosen(session, None) if str(base.id) in self.knowledge_base_ids]
        found = await search_in(self.runtime, self.organization_id, question, bases, limit=limit)
        self.usage.extend(found.usage)
        return [passage.content for passage in found.passages]


def agent_knowledge(
    runtime: Runtime, organization_id: UUID, knowledge_base_ids: Sequence[str], usage: list[ModelUsage]
) -> AgentKnowledge | None:
    """The knowledge of an agent with these knowledge bases, None for one that has none."""
    return AgentKnowledge(runtime, organization_id, knowledge_base_ids, usage) if knowledge_base_ids else None
