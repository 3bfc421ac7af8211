"""Jobs of text messages."""

from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.resources.sms.queries import list_due_texts
from switchboard.resources.sms.sender import MessageSender, ask_for_status


async def send_text(sender: MessageSender, *, organization_id: UUID, message_id: UUID) -> None:
    """Send a new outbound message."""
    await sender.send_queued_message(organization_id, message_id)


async def recover_text(
    sender: MessageSender, database: Database, providers: Providers, *, organization_id: UUID, message_id: UUID
) -> None:
    """Retry a message without progress, or give it up; of one that is sent, ask whether it was delivered."""
    await sender.recover_message(organization_id, message_id)
    await ask_for_status(database, providers, organization_id, message_id)


async def reconcile_texts(database: Database, queue: Queue) -> int:
    """Recover messages, answers, and files whose wake-up was lost or whose worker died, and return how many; each is
    a job of its own, because carriers and models take time.
    """
    async with database.system() as session:
        unattended, unanswered, unfetched = await list_due_texts(session)
    for organization_id, message_id in unattended:
        await queue.enqueue("recover_text", organization_id=organization_id, message_id=message_id)
    for organization_id, conversation_id in unanswered:
        await queue.enqueue("answer_text", organization_id=organization_id, conversation_id=conversation_id)
    for organization_id, media_id in unfetched:
        await queue.enqueue("fetch_media", organization_id=organization_id, media_id=media_id)
    return len(unattended) + len(unanswered) + len(unfetched)
