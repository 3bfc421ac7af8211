"""Knowledge of an agent in a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.search import PassageSearch


@dataclass(frozen=True, slots=True)
class AgentKnowledge:
    """Searches an agent's knowledge bases (implements `conversation.knowledge.Knowledge`); deleted ones are skipped.

    The usage of each search is added to `usage`, to bill the conversation.
    """

    search: PassageSearch
    organization_id: UUID
    knowledge_base_ids: Sequence[str]
    usage: list[ModelUsage]

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        async with self.search.database.tenant(self.organization_id) as session:
            bases = [
                base
                for base in await knowledge.resolve_knowledge_bases(session, None)
                if str(base.id) in self.knowledge_base_ids
            ]
        found = await self.search.search_knowledge_bases(self.organization_id, question, bases, limit=limit)
        self.usage.extend(found.usage)
        return [passage.content for passage in found.passages]


def build_agent_knowledge(
    database: Database,
    providers: Providers,
    organization_id: UUID,
    knowledge_base_ids: Sequence[str],
    usage: list[ModelUsage],
) -> AgentKnowledge | None:
    """Build the knowledge of an agent with these knowledge bases; None without any."""
    if not knowledge_base_ids:
        return None
    search = PassageSearch(database, providers)
    return AgentKnowledge(search, organization_id, knowledge_base_ids, usage)
