"""Messages of Azure's Universal Speech Protocol over WebSocket.

As in `WebsocketMessageFormatter` and `SpeechConnectionMessage` of
github.com/microsoft/cognitive-services-speech-sdk-js, July 2026.
"""

import json
import struct
from datetime import UTC, datetime
from typing import Final, NamedTuple

LINE_END: Final = "\r\n"
MULAW_WAVE: Final = struct.pack(
    "<4sI4s4sIHHIIHH4sI", b"RIFF", 0, b"WAVE", b"fmt ", 16, 7, 1, 8000, 8000, 1, 8, b"data", 0
)
"""The header of an endless WAVE file of mu-law at 8 kHz."""


class UspMessage(NamedTuple):
    """A message from Azure: its path in lower case, the id of its request, and its JSON text."""

    path: str
    request_id: str
    body: str


def build_text_message(path: str, request_id: str, body: object) -> str:
    """Return a message with a JSON body."""
    headers = _build_headers(path, request_id, "application/json")
    return headers + LINE_END + json.dumps(body)


def build_audio_message(request_id: str, audio: bytes, content_type: str | None = None) -> bytes:
    """Return a message with audio; an empty one ends the audio of the request."""
    headers = _build_headers("audio", request_id, content_type).encode()
    return struct.pack(">H", len(headers)) + headers + audio


def parse_message(message: str) -> UspMessage:
    """Parse a text message."""
    head, _, body = message.partition(LINE_END * 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head.splitlines())
    }
    return UspMessage(headers.get("path", "").lower(), headers.get("x-requestid", "").lower(), body)


def _build_headers(path: str, request_id: str, content_type: str | None) -> str:
    headers = {
        "Path": path,
        "X-RequestId": request_id,
        "X-Timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **({"Content-Type": content_type} if content_type is not None else {}),
    }
    return "".join(f"{name}: {value}{LINE_END}" for name, value in headers.items())
