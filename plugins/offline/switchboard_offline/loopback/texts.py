"""Outbound text messages. For recipients that begin with +1555, the last two digits decide the result."""

import asyncio
from typing import Final
from uuid import uuid4

from switchboard.plugin_sdk import OutboundTextMessage, ProviderError

from switchboard_offline.loopback.callbacks import InboundTextNotice, NoticeSender, NoticeUndelivered, TextStatusNotice
from switchboard_offline.loopback.persons import read_ending

STEP_SECONDS: Final = 0.1
REPLY: Final = "Yes, please."


def new_text_id() -> str:
    return f"lt-{uuid4().hex}"


def check_destination(order: OutboundTextMessage) -> None:
    """Raise `ProviderError` for a destination that the carrier refuses."""
    if read_ending(order.to_number) == "82":
        raise ProviderError(f"the carrier does not text {order.to_number}", code="destination_refused", retryable=False)


async def deliver_text(post: NoticeSender, order: OutboundTextMessage, text_id: str) -> None:
    """Deliver a text message, report its statuses, and send the reply of a recipient who writes one."""
    kind = read_ending(order.to_number)
    delivered = TextStatusNotice(text_id, "delivered")
    if kind == "80":
        delivered = TextStatusNotice(text_id, "undelivered", "the phone is switched off", "30003")
    notices: list[TextStatusNotice | InboundTextNotice] = [TextStatusNotice(text_id, "sent"), delivered]
    if kind == "81":
        notices.append(InboundTextNotice(new_text_id(), order.to_number, order.from_number, REPLY))
    for notice in notices:
        await asyncio.sleep(STEP_SECONDS)
        try:
            await post.deliver(order.callbacks.events, notice)
        except NoticeUndelivered:
            return
