"""Text messages. For recipients that begin with +1555, the last two digits decide the result."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Final
from uuid import uuid4

from switchboard.plugin_sdk import (
    MessageFile,
    OutboundTextMessage,
    ProviderError,
    TextMessageReceived,
    TextMessageStatus,
)

from switchboard_offline.loopback.callbacks import NoticeSender, NoticeUndelivered
from switchboard_offline.loopback.persons import read_ending

STEP_SECONDS: Final = 0.1
REPLY: Final = "Yes, please."
PICTURE: Final = "loopback:picture.png"
FILES: Final = {
    PICTURE: (
        "image/png",
        b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="),
    )
}
"""Files of people's text messages, with their content types, by address."""


def new_text_id() -> str:
    return f"lt-{uuid4().hex}"


def check_destination(order: OutboundTextMessage) -> None:
    """Raise `ProviderError` for a destination that the carrier refuses."""
    if read_ending(order.to_number) == "82":
        raise ProviderError(f"the carrier does not text {order.to_number}", code="destination_refused", retryable=False)


def fetch_file(url: str) -> MessageFile:
    """Return a file of a text message. Raises `ProviderError`."""
    if url not in FILES:
        raise ProviderError(f"the carrier has no file {url}", code="404", retryable=False)
    content_type, content = FILES[url]
    return MessageFile(content_type, _yield_content(content))


async def _yield_content(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def deliver_text(post: NoticeSender, order: OutboundTextMessage, text_id: str) -> None:
    """Deliver a text message, report its statuses, and send the reply of a recipient who writes one."""
    kind = read_ending(order.to_number)
    delivered = TextMessageStatus(text_id, "delivered")
    if kind == "80":
        delivered = TextMessageStatus(text_id, "undelivered", "the phone is switched off", "30003")
    notices: list[TextMessageStatus | TextMessageReceived] = [TextMessageStatus(text_id, "sent"), delivered]
    if kind == "81":
        notices.append(TextMessageReceived(new_text_id(), order.to_number, order.from_number, REPLY))
    if kind == "83":
        notices.append(TextMessageReceived(new_text_id(), order.to_number, order.from_number, "", (PICTURE,)))
    for notice in notices:
        await asyncio.sleep(STEP_SECONDS)
        try:
            await post.deliver(order.callbacks.events, notice)
        except NoticeUndelivered:
            return
