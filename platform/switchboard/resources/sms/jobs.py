"""Jobs of text messages."""

from uuid import UUID

from switchboard.resources.sms import auto_reply, system_queries
from switchboard.resources.sms.sender import MessageSender
from switchboard.runtime import Runtime


async def send_text(runtime: Runtime, *, organization_id: str, message_id: str) -> None:
    """Send a new outbound message."""
    sender = MessageSender(runtime.database, runtime.providers, runtime.settings.base_url)
    await sender.send_queued_message(UUID(organization_id), UUID(message_id))


async def recover_text(runtime: Runtime, *, organization_id: str, message_id: str) -> None:
    """Retry a message without progress, or give it up."""
    sender = MessageSender(runtime.database, runtime.providers, runtime.settings.base_url)
    await sender.recover_message(UUID(organization_id), UUID(message_id))


async def answer_text(runtime: Runtime, *, organization_id: str, conversation_id: str) -> None:
    """Have the agent answer a conversation."""
    await auto_reply.answer_conversation(runtime, UUID(organization_id), UUID(conversation_id))


async def reconcile_texts(runtime: Runtime) -> None:
    """Recover messages and answers whose wake-up was lost or whose worker died; each is a job of its own, because
    carriers and models take time.
    """
    async with runtime.database.system() as session:
        unattended = await system_queries.list_stalled_messages(session)
        unanswered = await system_queries.list_due_answers(session)
    for organization_id, message_id in unattended:
        await runtime.queue.enqueue("recover_text", organization_id=str(organization_id), message_id=str(message_id))
    for organization_id, conversation_id in unanswered:
        await runtime.queue.enqueue(
            "answer_text", organization_id=str(organization_id), conversation_id=str(conversation_id)
        )
