"""Telnyx's encoding of text messages: a part of GSM 03.38, and at most ten segments
(https://developers.telnyx.com/docs/messaging/messages/message-encoding, read in November 2026).
"""

from string import ascii_letters, digits
from typing import Final

from switchboard.plugin_sdk import TextEncoding

EXTENSION: Final = frozenset("~^|\\{}[]")
BASIC: Final = frozenset(f"{digits}{ascii_letters}\n\r !\"#$%&'()*+,-./:;<=>?@_£¥èéùìòØøÅåÆæßÉ¡ÄÖÑÜ§¿äöñüà")
ENCODING: Final = TextEncoding(BASIC, EXTENSION, max_segments=10)
