"""`client_state`: data that Telnyx stores with a call and returns in every event about it.

It is signed, because a browser can set the state of its own call.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final

import msgspec

_SIGNATURE_BYTES: Final = 32


class CallState(msgspec.Struct, frozen=True, omit_defaults=True):
    """`reference` is the platform's id of an outbound call, `call_id` Telnyx's id of an inbound one. `media` is the
    digest of the media socket's address.

    `forward_to` and `caller_id` describe the forwarding of an inbound call once it is answered. `leg_of` is the call
    whose transfer dialed this leg; `transferred` marks a call that has left the platform. `introduction` is spoken to
    the target of a warm transfer, in `language`, with the question for a key.
    """

    reference: str = ""
    call_id: str = ""
    media: str = ""
    forward_to: str = ""
    caller_id: str = ""
    leg_of: str = ""
    transferred: bool = False
    introduction: str = ""
    language: str = ""


_decoder: Final[msgspec.json.Decoder[CallState]] = msgspec.json.Decoder(CallState)


def digest_media_url(media_url: str) -> str:
    """Return the digest of a media socket's address, which itself is a secret."""
    return hashlib.sha256(media_url.encode()).hexdigest()


def write_state(api_key: str, state: CallState) -> str:
    """Return a state as a signed `client_state`, in base64."""
    content = msgspec.json.encode(state)
    return b64encode(_sign(api_key, content) + content).decode()


def read_state(api_key: str, client_state: str | None) -> CallState:
    """Return the state; an empty one if it is missing or its signature is invalid."""
    try:
        raw = b64decode(client_state or "", validate=True)
        if hmac.compare_digest(raw[:_SIGNATURE_BYTES], _sign(api_key, raw[_SIGNATURE_BYTES:])):
            return _decoder.decode(raw[_SIGNATURE_BYTES:])
    except ValueError:
        pass
    return CallState()


def _sign(api_key: str, content: bytes) -> bytes:
    return hmac.new(api_key.encode(), b"client state " + content, hashlib.sha256).digest()
