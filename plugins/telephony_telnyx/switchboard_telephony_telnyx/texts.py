"""Text messages that Telnyx has accepted."""

from typing import Any

import msgspec
from switchboard.plugin_sdk import TextMessageStatus

from switchboard_telephony_telnyx.callbacks import TextPayload, translate_telnyx_text_status
from switchboard_telephony_telnyx.errors import read_field
from switchboard_telephony_telnyx.transport import call_telnyx


async def find_text_status(client: Any, text_id: str) -> TextMessageStatus | None:
    """Retrieve a message (https://developers.telnyx.com/api-reference/messages/retrieve-a-message).

    Raises `ProviderError`.
    """
    text = read_field(await call_telnyx(lambda: client.messages.retrieve(text_id)))
    return translate_telnyx_text_status(msgspec.convert(text.to_dict(), TextPayload, strict=False))
