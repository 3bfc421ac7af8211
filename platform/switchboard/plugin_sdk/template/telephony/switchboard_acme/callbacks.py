"""Acme's callbacks: their signature, and their translation to the platform's events."""

import hmac
import json
from typing import Any

from switchboard.plugin_sdk import (
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    TextMessageReceived,
    TextMessageStatus,
)

SIGNATURE = "x-signature"


def sign(secret: str, url: str, body: bytes) -> str:
    """Return Acme's signature of a callback: HMAC-SHA256 of the address and the body."""
    return hmac.new(secret.encode(), url.encode() + b"\n" + body, "sha256").hexdigest()


def read_callback(secret: str, request: CallbackRequest) -> dict[str, Any]:
    """Return the JSON of a callback. Raises `InvalidCallback` unless Acme has signed it."""
    given = request.headers.get(SIGNATURE, "").encode()
    if not hmac.compare_digest(given, sign(secret, request.url, request.body).encode()):
        raise InvalidCallback("the signature is wrong")
    try:
        event = json.loads(request.body)
    except ValueError as error:
        raise InvalidCallback("the body is not JSON") from error
    if not isinstance(event, dict):
        raise InvalidCallback("the body is not an object")
    return event


def translate(event: dict[str, Any]) -> tuple[CarrierEvent, ...]:
    """Translate an event; unknown ones are ignored. A repeated event translates to the same."""
    translated: CarrierEvent | None = None
    match event:
        case {"event": "call.incoming", "id": str(number), "from": str(caller), "to": str(callee)}:
            translated = IncomingCall(number, caller, callee)
        case {"event": "call.ringing", "id": str(number)}:
            translated = CalleeRinging(number)
        case {"event": "call.answered", "id": str(number)}:
            translated = CallAnswered(number)
        case {"event": "call.ended", "id": str(number), "outcome": outcome}:
            translated = CallEnded(number, outcome, duration_seconds=event.get("seconds"))
        case {"event": "message.received", "id": str(number), "from": str(sender), "to": str(to), "text": str(text)}:
            files = tuple(str(url) for url in event.get("files", ()))
            translated = TextMessageReceived(number, sender, to, text, files)
        case {"event": "message.status", "id": str(number), "status": status}:
            translated = TextMessageStatus(number, status)
    return () if translated is None else (translated,)
