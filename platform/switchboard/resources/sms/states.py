"""State machine of an outbound message (docs/decisions/0007-resource-states.md)."""

from datetime import datetime, timedelta
from typing import Literal

from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content
from switchboard.foundation.events.catalog import SmsSent, TextEvent
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import metrics
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_text_cost
from switchboard.resources.contacts.queries import get_contact_name
from switchboard.resources.identity.service import get_policy
from switchboard.resources.sms.models import SmsMessage

Status = Literal["sending", "sent", "delivered", "undelivered", "failed"]
ORDER = {"queued": 0, "sending": 1, "sent": 2, "delivered": 3, "undelivered": 3, "failed": 3}
TAKEN = ("sent", "delivered", "undelivered")
LOOKS_AT_AGES = [timedelta(minutes=10), *(timedelta(hours=hours) for hours in (1, 6, 24, 72))]
"""Ages of a message at which its carrier is asked whether it was delivered, if no report has come."""


def find_next_look(message: SmsMessage) -> datetime | None:
    """Return when the carrier is asked for the status of a message that it has accepted; None after the last time."""
    moments = (message.created_at + age for age in LOOKS_AT_AGES)
    return next((moment for moment in moments if moment > now()), None)


async def advance_message(
    session: WriteSession, message: SmsMessage, status: Status, *, error: str | None = None
) -> None:
    """Advance a (locked) message to a state, forward only: late, repeated, or reordered callbacks change nothing.

    A failure that was assumed because the carrier never reported is overridden by the carrier's report.
    """
    assumed = message.status == "failed" and message.carrier_text_id is None and status in TAKEN
    if ORDER[status] <= ORDER[message.status] and not assumed:
        return
    taken = message.status in TAKEN
    message.status, message.error_message = status, error
    if status != "sending":
        message.unsent_body = Content(None)
        message.watch_at = find_next_look(message) if status == "sent" else None
    if ORDER[status] == ORDER["failed"]:
        metrics.texts.labels("outbound", status).inc()
    if status == "failed":
        await ledger.settle_hold(session, "text", message.id, message.cost)
    if status in TAKEN and not taken:
        prices = (await get_policy(session, message.organization_id)).prices
        message.text_cost = calculate_text_cost(prices, message.segments)
        message.cost += message.text_cost
        await ledger.settle_hold(session, "text", message.id, message.cost)
        await publish(session, await build_message_event(session, SmsSent, message), depth=message.cause_depth)


async def correct_message_cost(
    session: WriteSession, message: SmsMessage, *, segments: int | None, cost: float | None
) -> None:
    """Replace the estimates of a (locked) message by the carrier's own segments and cost, in US dollars.

    A message that was not charged keeps its cost.
    """
    recounted = segments is not None and segments != message.segments
    message.segments = segments or message.segments
    if message.text_cost is None or (cost is None and not recounted):
        return
    prices = (await get_policy(session, message.organization_id)).prices
    text_cost = calculate_text_cost(prices, message.segments, reported=cost)
    if (difference := text_cost - message.text_cost) != 0:
        message.cost += difference
        message.text_cost = text_cost
        note = f"The carrier reported another cost of the text message {message.id}."
        await ledger.correct_charge(session, "text", difference, note=note)


async def build_message_event(session: ReadSession, kind: type[TextEvent], message: SmsMessage) -> TextEvent:
    """Build the data of an event about the message as it is now."""
    await open_content(session, message)
    fields = {
        name: getattr(message, name)
        for name in TextEvent.model_fields
        if name not in ("message_id", "contact_name", "body", "media_urls")
    }
    contact_number = message.from_number if message.direction == "inbound" else message.to_number
    name = await get_contact_name(session, contact_number)
    texts = {"body": message.body.value, "media_urls": message.media_urls.value}
    return kind.model_validate({**fields, **texts, "message_id": message.id, "contact_name": name})
