"""Receive text messages: save each once, publish its event, and obey keywords; otherwise schedule the agent's
answer.
"""

from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, ReadSession, new_id, now
from switchboard.foundation.encryption.content import Content
from switchboard.foundation.events.catalog import SmsReceived
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import TextEncoding, TextMessageReceived
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.phone_numbers.queries import add_reference, find_phone_number
from switchboard.resources.sms import queries
from switchboard.resources.sms.auto_reply import schedule_answer
from switchboard.resources.sms.keywords import obey_keyword, parse_keyword
from switchboard.resources.sms.media import save_media
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.states import build_message_event

logger = structlog.get_logger()
CARRIER_DELAY = timedelta(hours=1)


async def receive_message(
    database: Database, organization_id: UUID, carrier: str, incoming: TextMessageReceived, *, base_url: str
) -> None:
    """Receive a message; a repeated callback changes nothing. A message to a number that is not the organization's
    is logged and dropped. Private data is redacted before anything is saved. Files are fetched by a job, and have
    addresses below `base_url`.
    """
    async with database.write(organization_id) as session:
        number = await find_phone_number(session, incoming.to_number)
        if number is None:
            logger.warning(
                "message to a number that is not the organization's",
                carrier=carrier,
                to_number=incoming.to_number,
            )
            return
        conversation = await queries.get_or_create_conversation(session, number, incoming.from_number)
        message_id = new_id()
        if not await add_reference(session, "text", carrier, incoming.carrier_text_id, message_id):
            return
        agent = await session.find(Agent, number.inbound_agent_id)
        body = incoming.body.replace("\0", "")  # PostgreSQL stores no NUL
        words = await (await open_redactor(session, agent)).search_and_redact(body)
        message = SmsMessage(
            id=message_id,
            organization_id=conversation.organization_id,
            conversation_id=conversation.id,
            direction="inbound",
            from_number=incoming.from_number,
            to_number=incoming.to_number,
            body=Content(words.kept),
            status="received",
            author="contact",
            segments=TextEncoding().count_segments(incoming.body),
            carrier=carrier,
            carrier_text_id=incoming.carrier_text_id,
            cause_depth=await _cause_depth(session, incoming),
        )
        session.cause_depth = message.cause_depth
        await save_media(session, message, incoming.media_urls, base_url)
        conversation.last_message_at = conversation.last_inbound_at = message.created_at
        conversation.resolved_at = None
        metrics.texts.labels("inbound", message.status).inc()
        await publish(session, await build_message_event(session, SmsReceived, message), depth=message.cause_depth)
        said = incoming.opt_out or parse_keyword(incoming.body)
        if said is None or not await obey_keyword(session, conversation, said, answered=incoming.opt_out is not None):
            schedule_answer(conversation)


async def _cause_depth(session: ReadSession, incoming: TextMessageReceived) -> int:
    """Continue the depth of a message from our own numbers, so that automations cannot loop over the carrier."""
    if await find_phone_number(session, incoming.from_number) is None:
        return 0
    since = now() - CARRIER_DELAY
    sent = await queries.find_sent_message(session, incoming.from_number, incoming.to_number, since=since)
    return sent.cause_depth if sent else 0
