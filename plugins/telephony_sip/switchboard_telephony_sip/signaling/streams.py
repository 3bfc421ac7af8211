"""One TCP or TLS connection of SIP, whose messages are framed by Content-Length (RFC 3261, section 18.3)."""

import asyncio
import re
from collections.abc import Callable

from switchboard_telephony_sip.signaling.messages import MAX_MESSAGE_BYTES
from switchboard_telephony_sip.signaling.peers import Peer

FIRST_MESSAGE_SECONDS = 10.0
BODY_SECONDS = 10.0
MAX_BACKLOG_BYTES = 1024 * 1024
KEEP_ALIVE, KEEP_ALIVE_REPLY = b"\r\n\r\n", b"\r\n"
LENGTH = re.compile(rb"^(?:content-length|l)[ \t]*:\s*(\d{1,9})[ \t]*\r$", re.IGNORECASE | re.MULTILINE)


class SipStream:
    """Reader and writer of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer

    async def read_all(self, receive: Callable[[bytes, Peer], None]) -> None:
        """Hand over each message until the connection ends, or breaks the framing.

        A connection that sends no message within ten seconds is closed, so that scanners hold none.
        """
        try:
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                data = await self._read_message()
            while data is not None:
                receive(data, self.peer)
                data = await self._read_message()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return

    async def _read_message(self) -> bytes | None:
        """Return the next message, or None for one that is too long; answers keep-alives (RFC 5626, section 4.4.1)."""
        head = b""
        while not head:
            found = await self._reader.readuntil(b"\r\n\r\n")
            head = found.lstrip(b"\r\n")
            if found == KEEP_ALIVE:
                self.write(KEEP_ALIVE_REPLY)
        declared = LENGTH.search(head)
        length = int(declared[1]) if declared else 0
        if len(head) + length > MAX_MESSAGE_BYTES:
            return None
        async with asyncio.timeout(BODY_SECONDS):
            return head + await self._reader.readexactly(length)

    def write(self, data: bytes) -> None:
        """Queue bytes; a peer that does not read is disconnected."""
        if self._writer.transport.get_write_buffer_size() > MAX_BACKLOG_BYTES:
            self._writer.transport.abort()
        elif not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()
