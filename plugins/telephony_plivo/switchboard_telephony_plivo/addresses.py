"""Addresses from which Plivo fetches the instructions of a call.

Plivo takes no instructions with a request and keeps no state with a call, so each address has what its instructions
need, after the platform's own callback address. A callback's signature covers its address, so nobody else can write
one.
"""

import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from switchboard.plugin_sdk import CallbackRequest, ForwardCall, InvalidCallback, WarmTransfer

ANSWER, DIAL, INTRODUCE = "answer", "dial", "introduce"
"""First parts of the paths: connect the stream, call another number, and ask a transfer's target for a key."""
_NUMBERS: Final = re.compile(r"([0-9]{5,15})/([0-9]{5,15})")


def get_events_url(request: CallbackRequest) -> str:
    """Return the platform's callback address to which the path of a callback was appended."""
    return request.url.removesuffix(f"/{request.path}")


def strip_plus(number: str) -> str:
    """Return a number as Plivo writes it."""
    return number.removeprefix("+")


def format_answer_url(events_url: str, media_url: str) -> str:
    return f"{events_url}/{ANSWER}/{_encode(media_url)}"


def format_dial_url(events_url: str, to_number: str, caller_id: str) -> str:
    return f"{events_url}/{DIAL}/{strip_plus(to_number)}/{strip_plus(caller_id)}"


def read_forwarded_call(state: str) -> ForwardCall:
    """Return the numbers of a transfer. Raises `InvalidCallback`."""
    numbers = _NUMBERS.fullmatch(state)
    if numbers is None:
        raise InvalidCallback("the address has no numbers")
    return ForwardCall(f"+{numbers[1]}", f"+{numbers[2]}")


def format_introduction_url(events_url: str, transfer: WarmTransfer) -> str:
    return f"{events_url}/{INTRODUCE}/{_encode(f'{transfer.language} {transfer.text} {transfer.prompt}')}"


def read_introduction(state: str) -> tuple[str, str]:
    """Return the language (BCP 47) and the text to speak to a transfer's target. Raises `InvalidCallback`."""
    language, _, text = decode_state(state).partition(" ")
    return language, text


def _encode(text: str) -> str:
    return urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def decode_state(state: str) -> str:
    """Return the text in an address: of `ANSWER`, the media socket's address. Raises `InvalidCallback`."""
    try:
        return zlib.decompress(urlsafe_b64decode(state + "=" * (-len(state) % 4))).decode()
    except (ValueError, zlib.error):
        raise InvalidCallback("the address is garbled") from None
