"""Messages between the host and a plugin's process, and the socket that carries them."""

import asyncio
import socket
import struct
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct

from switchboard.plugin_sdk import AudioFormat

MAX_MESSAGE_BYTES: Final = 32 * 1024**2
"""256 vectors of 3072 dimensions are 7 MB."""
WINDOW: Final = 32
"""Items of a stream that its reader has not consumed yet, at most. The writer waits then."""
_LENGTH: Final = struct.Struct(">I")


class Start(Struct, frozen=True, tag=True):
    """First message to the child. `module` is the value of the plugin's entry point, `settings` have the secrets.

    `allowed_networks`, as CIDRs, and `own_url` are those of `NetworkPolicy`.
    """

    plugin: str
    module: str
    distribution: str
    version: str
    capability: str
    name: str
    settings: dict[str, Any]
    data_dir: str
    allowed_networks: list[str]
    own_url: str | None
    memory_bytes: int
    log_level: str


class Request(Struct, frozen=True, tag=True):
    """Call of a method. The child replies with messages of the same `id`."""

    id: int
    method: str
    arguments: dict[str, Any]


class Audio(Struct, frozen=True, tag=True):
    """Audio for the transcription `id`."""

    id: int
    audio: bytes


class Finalize(Struct, frozen=True, tag=True):
    """End of an utterance of the transcription `id`."""

    id: int


class Credit(Struct, frozen=True, tag=True):
    """The reader of the stream `id` has consumed `count` items. Sent in both directions."""

    id: int
    count: int


class Cancel(Struct, frozen=True, tag=True):
    """Nobody waits for the request `id` any more."""

    id: int


class Ping(Struct, frozen=True, tag=True):
    """Question whether the child's event loop runs."""


class Pong(Struct, frozen=True, tag=True):
    """Response to `Ping`."""


class EndProcess(Struct, frozen=True, tag=True):
    """Close the provider, and end."""


class Ready(Struct, frozen=True, tag=True):
    """The provider is open. `audio_format` is the instance's, None for a provider without audio."""

    audio_format: AudioFormat | None


class Opened(Struct, frozen=True, tag=True):
    """The transcription `id` is open."""

    id: int


class Item(Struct, frozen=True, tag=True):
    """Next item of the stream `id`."""

    id: int
    value: Raw


class Done(Struct, frozen=True, tag=True):
    """Result of the request `id`, or the end of its stream (`value` is then null)."""

    id: int
    value: Raw


class Failed(Struct, frozen=True, tag=True):
    """Failure of the request `id`; of the whole start for id 0. `kind` is the class of the exception to raise.

    `faulty_method` is the method whose contract does not allow what happened; empty for a failure that it allows.
    """

    id: int
    message: str
    code: str | None = None
    retryable: bool = True
    kind: Literal["provider", "timeout"] = "provider"
    faulty_method: str = ""
    retry_after_seconds: float | None = None


ToChild: TypeAlias = Start | Request | Audio | Finalize | Credit | Cancel | Ping | EndProcess
ToHost: TypeAlias = Ready | Opened | Item | Done | Failed | Credit | Pong
Reply: TypeAlias = Opened | Item | Done | Failed

ReceivedT = TypeVar("ReceivedT")
SentT = TypeVar("SentT")


class ConnectionLost(Exception):
    """The other process has closed its socket, or has sent bytes that are not a message."""


class MessageChannel(Generic[SentT, ReceivedT]):
    """One end of the socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = msgspec.msgpack.Decoder(received)

    @classmethod
    async def from_socket(cls, own: socket.socket, received: Any) -> Self:
        """Open the end that has this socket, for messages of the type `received`."""
        return cls(*await asyncio.open_connection(sock=own), received)

    async def send(self, message: SentT) -> None:
        """Send a message, and wait while the other process does not read. Raises `ConnectionLost`.

        Raises `ValueError` for a message that is too long, and `TypeError` for a value that MessagePack cannot hold.
        """
        body = encode_value(message)
        if len(body) > MAX_MESSAGE_BYTES:
            raise ValueError(f"{len(body)} bytes are too many for a message")
        if self._writer.is_closing():
            raise ConnectionLost
        try:
            self._writer.write(_LENGTH.pack(len(body)) + body)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost from error

    async def receive(self) -> ReceivedT:
        """Return the next message. Raises `ConnectionLost`."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > MAX_MESSAGE_BYTES:
                raise ConnectionLost
            message: ReceivedT = self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError, msgspec.MsgspecError) as error:
            raise ConnectionLost from error
        return message

    def close(self) -> None:
        """Close the socket."""
        self._writer.close()


def encode_value(value: object) -> bytes:
    """Encode a value of the SDK, or a message. Raises `TypeError` for another one."""
    return _ENCODER.encode(value)


def _convert(value: object) -> object:
    # Vectors and scores of numerical libraries.
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_convert)
