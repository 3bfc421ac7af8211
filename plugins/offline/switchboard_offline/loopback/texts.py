"""Texts: what becomes of those the platform sends. The last two digits of a number that begins with +1555 decide."""

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
    """Raises `ProviderError` for a destination that the carrier does not text."""
    if read_ending(order.to_number) == "82":
        raise ProviderError(f"the carrier does not text {order.to_number}", code="destination_refused", retryable=False)


async def deliver_text(post: NoticeSender, order: OutboundTextMessage, text_id: str) -> None:
    """Take a text to its person, telling the platform how it gets on, and bring the answer of those who write one."""
    kind = read_ending(order.to_number)
    delivered = TextStatusNotice(text_id, "delivered")
    if kind == "80":
        delivered = TextStatusNotice(text_id, "undelivered", "the phone is switched off", "30003")
    told: list[TextStatusNotice | InboundTextNotice] = [TextStatusNotice(text_id, "sent"), delivered]
    if kind == "81":
        told.append(InboundTextNotice(new_text_id(), order.to_number, order.from_number, REPLY))
    for one in told:
        await asyncio.sleep(STEP_SECONDS)
        try:
            await post.deliver(order.callbacks.events, one)
        except NoticeUndelivered:
            return
