"""What Telnyx keeps with a call for us and tells with everything about it: `client_state`.

Signed, because somebody who calls from a browser can give a state of their own along.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final

import msgspec

_SIGNATURE_BYTES: Final = 32


class CallState(msgspec.Struct, frozen=True, omit_defaults=True):
    """`reference` is our id of a call that we placed, `call_id` Telnyx's of one that came in; `media` is the digest of the address of its audio.

    `forward_to` and `caller_id` say what an incoming call is to be connected to once it is answered. `leg_of` is the call that a leg was dialled
    for by a transfer, `transferred` says that a call has left us. `introduction` is what the target of a warm transfer is to hear, in `language`.
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
    """What a state says of a socket's address, which is a secret."""
    return hashlib.sha256(media_url.encode()).hexdigest()


def write_state(api_key: str, state: CallState) -> str:
    """A state as `client_state`, base64."""
    told = msgspec.json.encode(state)
    return b64encode(_sign(api_key, told) + told).decode()


def read_state(api_key: str, client_state: str | None) -> CallState:
    """A state of ours; an empty one for what is missing or somebody else's."""
    try:
        raw = b64decode(client_state or "", validate=True)
        if hmac.compare_digest(raw[:_SIGNATURE_BYTES], _sign(api_key, raw[_SIGNATURE_BYTES:])):
            return _decoder.decode(raw[_SIGNATURE_BYTES:])
    except ValueError:
        pass
    return CallState()


def _sign(api_key: str, told: bytes) -> bytes:
    return hmac.new(api_key.encode(), b"client state " + told, hashlib.sha256).digest()
