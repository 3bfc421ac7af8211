"""Jobs of text messages."""

from uuid import UUID

from sqlalchemy import or_
from sqlmodel import col

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.jobs import Queue, list_due
from switchboard.resources.sms.models import SmsConversation, SmsMedia, SmsMessage
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
    claimed_until = col(SmsConversation.answering_until)
    is_free = or_(claimed_until.is_(None), claimed_until <= now())
    async with database.system() as session:
        unattended = await list_due(session, SmsMessage, col(SmsMessage.watch_at))
        unanswered = await list_due(session, SmsConversation, col(SmsConversation.reply_due_at), is_free)
        unfetched = await list_due(session, SmsMedia, col(SmsMedia.fetch_due_at))
    for organization_id, message_id in unattended:
        await queue.enqueue("recover_text", organization_id=organization_id, message_id=message_id)
    for organization_id, conversation_id in unanswered:
        await queue.enqueue("answer_text", organization_id=organization_id, conversation_id=conversation_id)
    for organization_id, media_id in unfetched:
        await queue.enqueue("fetch_media", organization_id=organization_id, media_id=media_id)
    return len(unattended) + len(unanswered) + len(unfetched)
