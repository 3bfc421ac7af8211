"""Somebody texts one of our numbers: it is written down once, told, and obeyed where it is a keyword; else the agent owes an answer."""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlmodel import col

from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.events.catalog import SmsReceived
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.events.triggers import act_at_depth
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import masked_number
from switchboard.plugin_sdk import TextReceived
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.auto_reply import owe_answer
from switchboard.resources.sms.keywords import keyword, obey
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.segments import segments
from switchboard.resources.sms.states import event_data
from switchboard.runtime import Runtime

logger = structlog.get_logger()
CARRIER_DELAY = timedelta(hours=1)


async def receive(runtime: Runtime, organization_id: UUID, carrier: str, incoming: TextReceived) -> None:
    """Take a text in; told again by the carrier, it changes nothing. One to a number that is not ours is logged and dropped."""
    async with runtime.database.tenant(organization_id) as session:
        number = await numbers.find_phone_number(session, incoming.to_number)
        if number is None:
            logger.warning(
                "text to a number that is not the organization's",
                carrier=carrier,
                to_number=masked_number(incoming.to_number),
            )
            return
        conversation = await sms.get_or_create_conversation(session, number, incoming.from_number)
        if await _is_known(session, carrier, incoming.carrier_text_id):
            return
        message = _message(conversation, carrier, incoming)
        message.cause_depth = await _cause_depth(session, incoming)
        act_at_depth(session, message.cause_depth)
        session.add(message)
        conversation.last_message_at = message.created_at
        metrics.texts.labels("inbound", message.status).inc()
        await publish(session, await event_data(session, SmsReceived, message), depth=message.cause_depth)
        said = incoming.opt_out or keyword(incoming.body)
        if said is None or not await obey(session, conversation, number, said, answered=incoming.opt_out is not None):
            owe_answer(session, conversation)


async def _is_known(session: TenantSession, carrier: str, carrier_text_id: str) -> bool:
    rows = sms.list_messages(session).where(
        col(SmsMessage.carrier) == carrier, col(SmsMessage.carrier_text_id) == carrier_text_id
    )
    return (await session.exec(rows)).one_or_none() is not None


async def _cause_depth(session: TenantSession, incoming: TextReceived) -> int:
    """What one of our own numbers has sent goes on where it left off, so that automations cannot chase each other over the carrier."""
    if await numbers.find_phone_number(session, incoming.from_number) is None:
        return 0
    rows = sms.list_messages(session).where(
        col(SmsMessage.direction) == "outbound",
        col(SmsMessage.from_number) == incoming.from_number,
        col(SmsMessage.to_number) == incoming.to_number,
        col(SmsMessage.created_at) > now() - CARRIER_DELAY,
    )
    sent = (await session.exec(rows.order_by(col(SmsMessage.created_at).desc()).limit(1))).one_or_none()
    return sent.cause_depth if sent else 0


def _message(conversation: SmsConversation, carrier: str, incoming: TextReceived) -> SmsMessage:
    body = incoming.body.replace("\0", "")  # PostgreSQL takes no NUL
    return SmsMessage(
        id=new_id(),
        organization_id=conversation.organization_id,
        conversation_id=conversation.id,
        direction="inbound",
        from_number=incoming.from_number,
        to_number=incoming.to_number,
        body=body,
        media_urls=list(incoming.media_urls),
        status="received",
        author="contact",
        segments=segments(body),
        carrier=carrier,
        carrier_text_id=incoming.carrier_text_id,
    )
