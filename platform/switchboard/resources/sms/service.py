"""Business rules of text messages: listing and creation."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.web.errors import (
    ApiError,
    InvalidState,
    OnDoNotCallList,
    RecipientOptedOut,
    ValidationFailed,
)
from switchboard.plugin_sdk import ProviderSettings, TelephonyProvider, TextEncoding
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_text_cost
from switchboard.resources.destinations.service import find_refusal, pause_at_limits
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.queries import get_or_create_conversation
from switchboard.resources.sms.schemas import SmsCreate

Author = Literal["api", "agent", "automation", "person", "platform"]


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Text of an outbound message, and the public addresses of its files."""

    body: str
    media_urls: Sequence[str] = ()


async def send_message(session: WriteSession, data: SmsCreate, *, author: Author = "api") -> SmsMessage:
    """Create a message to be sent. Raises `ValidationFailed` for a number that cannot be used, and what
    `compose_message` raises.
    """
    number = await numbers.require_number(session, data.from_number_id, field="from_number_id")
    if data.to_number == number.phone_number:
        raise ValidationFailed.field("to_number", "is the number that the message is sent from")
    return await compose_message(
        session, number, data.to_number, MessageContent(data.body, data.media_urls), author=author
    )


async def compose_message(
    session: WriteSession,
    number: PhoneNumber,
    to_number: str,
    content: MessageContent,
    *,
    author: Author,
    agent_id: UUID | None = None,
) -> SmsMessage:
    """Create a message to be sent from one of our numbers, by an agent if that is not the number's own.

    Raises `InvalidState` for a number that cannot send text messages, and what `save_outbound_message` raises.
    """
    if not number.sms_active:
        raise InvalidState("The phone number cannot send text messages.")
    conversation = await get_or_create_conversation(session, number, to_number)
    message = await save_outbound_message(session, conversation, content, author=author, agent_id=agent_id)
    record_audit(session, AuditAction.SMS_MESSAGE_SENT, message.id)
    return message


async def save_outbound_message(
    session: WriteSession,
    conversation: SmsConversation,
    content: MessageContent,
    *,
    author: Author,
    agent_id: UUID | None = None,
    cost: Decimal = Decimal(0),
) -> SmsMessage:
    """Save a message in its (locked) conversation; a job asks the carrier once the transaction commits. `cost` is
    the cost of writing it.

    What is kept is redacted as the agent's conversations are, without `agent_id` those of the number's agent. The full
    text is sent.

    Raises `ValidationFailed` for a message that is too long for the carrier or has too many files, and, except for
    replies that the platform must send, the refusals of `find_text_refusal`, and `InsufficientBalance`.
    """
    if author != "platform" and (refusal := await find_text_refusal(session, conversation)) is not None:
        raise refusal
    number = await session.get_one(PhoneNumber, conversation.phone_number_id)
    require_sendable_media(session, number.carrier, content.media_urls)
    body = content.body
    agent_id = agent_id or number.inbound_agent_id
    agent = await session.find(Agent, agent_id)
    kept = (await (await open_redactor(session, agent)).search_and_redact(body)).kept
    message = SmsMessage(
        organization_id=conversation.organization_id,
        conversation_id=conversation.id,
        direction="outbound",
        from_number=number.phone_number,
        to_number=conversation.contact_number,
        body=Content(kept),
        unsent_body=Content(body if body != kept else None),
        media_urls=Content(list(content.media_urls)),
        status="queued",
        author=author,
        agent_id=agent_id if author == "agent" else None,
        segments=count_sendable_segments(session, number.carrier, body),
        cost=cost,
        carrier=number.carrier,
        watch_at=now(),
        cause_depth=session.cause_depth,
    )
    if author != "platform":
        prices = (await get_policy(session, message.organization_id)).prices
        await ledger.hold_funds(session, message.id, cost + calculate_text_cost(prices, message.segments))
    await seal_content(session, message)
    session.add(message)
    conversation.last_message_at = message.created_at
    if author != "platform":
        conversation.waiting_since = None
    await pause_at_limits(session, "texts_per_hour")
    session.wake("send_text")
    return message


async def find_text_refusal(
    session: ReadSession, conversation: SmsConversation, *, is_accepted: bool = False
) -> ApiError | None:
    """Return why the organization may not text a contact now: `RecipientOptedOut`, or another refusal of
    `find_refusal`; None if it may. With `is_accepted` for a message that was accepted before.
    """
    if conversation.status == "closed":
        return RecipientOptedOut()
    refusal = await find_refusal(session, conversation.contact_number, is_accepted=is_accepted)
    return RecipientOptedOut() if isinstance(refusal, OnDoNotCallList) else refusal


async def has_opted_out(session: ReadSession, conversation: SmsConversation) -> bool:
    """Return whether the contact has opted out, by STOP or through another channel."""
    return conversation.status == "closed" or await do_not_call.is_listed(session, conversation.contact_number)


def can_be_called(conversation: SmsConversation) -> bool:
    """Return whether the contact is a telephone: short codes and alphanumeric senders cannot be called or answered."""
    return conversation.contact_number.startswith("+")


# Limits of the carrier that sends a text message: its segments, and its files.


def find_encoding(session: ReadSession, carrier: str) -> TextEncoding:
    """Return a carrier's encoding; the usual one for a carrier whose plugin is not installed."""
    return _find_carrier(session, carrier).text_encoding


def require_sendable_media(session: ReadSession, carrier: str, media_urls: Sequence[str]) -> None:
    """Raise `ValidationFailed` for more files than the carrier sends with a text message."""
    most = _find_carrier(session, carrier).capabilities.max_media
    if len(media_urls) > most:
        raise ValidationFailed.field(
            "media_urls",
            f"{carrier} sends at most {most} files with a text message" if most else f"{carrier} sends no files",
        )


def count_sendable_segments(session: ReadSession, carrier: str, body: str) -> int:
    """Count the segments of a message. Raises `ValidationFailed` if the carrier would refuse that many."""
    encoding = find_encoding(session, carrier)
    segments = encoding.count_segments(body)
    if not encoding.can_send(segments):
        raise ValidationFailed.field(
            "body",
            f"has {segments} segments, and {carrier} sends at most {encoding.max_segments}; shorten it, or leave out "
            "characters that need two bytes each",
        )
    return segments


def _find_carrier(session: ReadSession, carrier: str) -> type[TelephonyProvider[ProviderSettings]]:
    return session.parts.registry.find_provider_class(TelephonyProvider, carrier) or TelephonyProvider
