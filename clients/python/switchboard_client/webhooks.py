"""Verification of webhook requests."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from pydantic import ValidationError

from switchboard_client.errors import InvalidSignature
from switchboard_client.generated.events import EVENT_MODELS, KnownEvent
from switchboard_client.model import Model

SIGNATURE_HEADER, EVENT_HEADER = "x-webhook-signature", "x-webhook-event"
TOLERANCE = 300.0


class UnknownEvent(Model):
    """An event that this version does not know."""

    event: str
    timestamp: datetime
    data: dict[str, Any]


Event: TypeAlias = KnownEvent | UnknownEvent


def verify(body: bytes, headers: Mapping[str, str], secret: str, *, tolerance: float = TOLERANCE) -> Event:
    """Return the event of a webhook request.

    `body`: the raw bytes, before any parsing. `secret`: the endpoint's, with `whsec_`. `tolerance`: greatest age of the
    signature in seconds. Raises `InvalidSignature`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    timestamp, signatures = _parse_signature(given.get(SIGNATURE_HEADER, ""))
    expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    if not any(hmac.compare_digest(expected.encode(), value.encode()) for value in signatures):
        raise InvalidSignature("No signature was made with this secret.")
    if abs(time.time() - timestamp) > tolerance:
        raise InvalidSignature(f"The signature is more than {tolerance:g} seconds old.")
    return _parse_event(given.get(EVENT_HEADER, ""), body)


def _parse_signature(header: str) -> tuple[int, list[str]]:
    """Return the time and the signatures of `t=1764000000,v1=…`, with a second `v1` while a secret is rotated."""
    parts = [part.partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t" and value.isascii() and value.isdigit()]
    if len(times) != 1:
        raise InvalidSignature("The request has no X-Webhook-Signature with one time.")
    return int(times[0]), [value for name, _, value in parts if name == "v1"]


def _parse_event(name: str, body: bytes) -> Event:
    try:
        return EVENT_MODELS.get(name, UnknownEvent).model_validate_json(body)
    except ValidationError as error:
        raise InvalidSignature("The signed body is not an event.") from error
