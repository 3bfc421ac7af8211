"""Texts: what becomes of those the platform sends. The last two digits of a number that begins with +1555 decide."""

import asyncio
from typing import Final
from uuid import uuid4

from switchboard.plugin_sdk import ProviderError, TextOrder

from switchboard_offline.loopback.callbacks import Post, TextCame, TextWent, Undelivered
from switchboard_offline.loopback.persons import ending

STEP_SECONDS: Final = 0.1
REPLY: Final = "Yes, please."


def new_id() -> str:
    return f"lt-{uuid4().hex}"


def refuse(order: TextOrder) -> None:
    """Raises `ProviderError` for a destination that the carrier does not text."""
    if ending(order.to_number) == "82":
        raise ProviderError(f"the carrier does not text {order.to_number}", code="destination_refused", retryable=False)


async def carry(post: Post, order: TextOrder, text_id: str) -> None:
    """Take a text to its person, telling the platform how it gets on, and bring the answer of those who write one."""
    kind = ending(order.to_number)
    delivered = TextWent(text_id, "delivered")
    if kind == "80":
        delivered = TextWent(text_id, "undelivered", "the phone is switched off", "30003")
    told: list[TextWent | TextCame] = [TextWent(text_id, "sent"), delivered]
    if kind == "81":
        told.append(TextCame(new_id(), order.to_number, order.from_number, REPLY))
    for one in told:
        await asyncio.sleep(STEP_SECONDS)
        try:
            await post.deliver(order.callbacks.events, one)
        except Undelivered:
            return
