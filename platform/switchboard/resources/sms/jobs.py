"""Jobs of text messages."""

from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.resources.sms import system_queries
from switchboard.resources.sms.auto_reply import AutoReplier
from switchboard.resources.sms.media import MediaFetcher
from switchboard.resources.sms.sender import MessageSender, ask_for_status


async def send_text(sender: MessageSender, *, organization_id: str, message_id: str) -> None:
    """Send a new outbound message."""
    await sender.send_queued_message(UUID(organization_id), UUID(message_id))


async def recover_text(
    sender: MessageSender, database: Database, providers: Providers, *, organization_id: str, message_id: str
) -> None:
    """Retry a message without progress, or give it up; of one that is sent, ask whether it was delivered."""
    await sender.recover_message(UUID(organization_id), UUID(message_id))
    await ask_for_status(database, providers, UUID(organization_id), UUID(message_id))


async def answer_text(replier: AutoReplier, *, organization_id: str, conversation_id: str) -> None:
    """Have the agent answer a conversation."""
    await replier.answer_conversation(UUID(organization_id), UUID(conversation_id))


async def reconcile_texts(database: Database, queue: Queue) -> int:
    """Recover messages, answers, and files whose wake-up was lost or whose worker died, and return how many; each is
    a job of its own, because carriers and models take time.
    """
    async with database.system() as session:
        unattended = await system_queries.list_stalled_messages(session)
        unanswered = await system_queries.list_due_answers(session)
        unfetched = await system_queries.list_due_media(session)
    for organization_id, message_id in unattended:
        await queue.enqueue("recover_text", organization_id=str(organization_id), message_id=str(message_id))
    for organization_id, conversation_id in unanswered:
        await queue.enqueue("answer_text", organization_id=str(organization_id), conversation_id=str(conversation_id))
    for organization_id, media_id in unfetched:
        await queue.enqueue("fetch_media", organization_id=str(organization_id), media_id=str(media_id))
    return len(unattended) + len(unanswered) + len(unfetched)


async def fetch_media(fetcher: MediaFetcher, *, organization_id: str, media_id: str) -> None:
    """Fetch a file of an inbound message from the carrier."""
    await fetcher.fetch(UUID(organization_id), UUID(media_id))
