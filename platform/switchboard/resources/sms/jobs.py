"""What workers do for texts."""

from uuid import UUID

from switchboard.resources.sms import auto_reply, sender, system_queries
from switchboard.runtime import Runtime


async def send_text(runtime: Runtime, *, organization_id: str, message_id: str) -> None:
    """Send a text that was just written down."""
    await sender.send(runtime, UUID(organization_id), UUID(message_id))


async def recover_text(runtime: Runtime, *, organization_id: str, message_id: str) -> None:
    """Carry a text on that nothing has happened to, or give it up."""
    await sender.look_after(runtime, UUID(organization_id), UUID(message_id))


async def answer_text(runtime: Runtime, *, organization_id: str, conversation_id: str) -> None:
    """Have the agent answer what was texted last."""
    await auto_reply.answer(runtime, UUID(organization_id), UUID(conversation_id))


async def reconcile_texts(runtime: Runtime) -> None:
    """Find texts and answers whose wake-up was lost or whose worker died; each is a job of its own, because carriers and models take their time."""
    async with runtime.database.system() as session:
        unattended = await system_queries.unattended(session)
        unanswered = await system_queries.unanswered(session)
    for organization_id, message_id in unattended:
        await runtime.queue.enqueue("recover_text", organization_id=str(organization_id), message_id=str(message_id))
    for organization_id, conversation_id in unanswered:
        await runtime.queue.enqueue(
            "answer_text", organization_id=str(organization_id), conversation_id=str(conversation_id)
        )
