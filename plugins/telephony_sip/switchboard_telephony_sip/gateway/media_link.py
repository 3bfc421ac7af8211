"""The media socket of a call: a WebSocket to the platform with the audio of one SIP dialog."""

import asyncio
from contextlib import suppress
from typing import Final
from uuid import uuid4

import aiohttp
from switchboard.plugin_sdk.json_media import Dtmf, DtmfDigit, Mark, MarkName, Stop

from switchboard_telephony_sip.codec import MEDIA_COMMANDS, MediaStreamInfo, SipStart, write_media_event
from switchboard_telephony_sip.media.session import MediaSession

CONNECT_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 1.0
MOST_WAITING: Final = 500
"""Frames that wait for a platform which does not read: ten seconds."""


class MediaSocketFailed(Exception):
    """The platform's media socket could not be opened, or sent something that is not understood."""


class MediaLink:
    """One call's media socket. `run` it as a task until the platform closes the socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, media: MediaSession, call_id: str) -> None:
        self._socket = socket
        self._media = media
        self._call_id = call_id
        self._waiting: asyncio.Queue[str | bytes] = asyncio.Queue(MOST_WAITING)
        self._is_late = False

    @classmethod
    async def open(cls, http: aiohttp.ClientSession, url: str, media: MediaSession, call_id: str) -> "MediaLink":
        """Open the socket. Raises `MediaSocketFailed`, whose text has no token."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                timeout = aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS)
                socket = await http.ws_connect(url, timeout=timeout, max_msg_size=1 << 22)
        except aiohttp.WSServerHandshakeError as error:
            raise MediaSocketFailed(f"the media socket cannot be opened: status {error.status}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MediaSocketFailed(f"the media socket cannot be opened: {type(error).__name__}") from error
        return cls(socket, media, call_id)

    async def run(self) -> None:
        """Exchange audio, keys, and marks until the platform closes the socket. Raises `MediaSocketFailed`."""
        self._put(write_media_event(SipStart(MediaStreamInfo(self._call_id, f"sip-{uuid4().hex}"))))
        media = self._media
        media.on_audio = self._put
        media.on_digit = lambda digit: self._put(write_media_event(Dtmf(DtmfDigit(digit))))
        media.on_mark = lambda name: self._put(write_media_event(Mark(MarkName(name))))
        sending = asyncio.create_task(self._send())
        try:
            await self._receive()
        finally:
            self._media.detach()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def close(self, *, stopped: bool) -> None:
        """Close the socket. `stopped`: tell the platform that the caller has hung up, or that the call was moved.

        `run` goes on meanwhile: a socket that closes without reading on is reset, and the platform, whose next audio
        then fails, never reads the last message.
        """
        self._media.detach()
        with suppress(ConnectionError, RuntimeError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if stopped and not self._socket.closed:
                    await self._socket.send_str(write_media_event(Stop()))
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.close()

    def _put(self, message: str | bytes) -> None:
        if self._waiting.full():
            self._is_late = True
        else:
            self._waiting.put_nowait(message)

    async def _send(self) -> None:
        with suppress(ConnectionError):  # `_receive` sees the end of the socket
            while True:
                message = await self._waiting.get()
                if isinstance(message, bytes):
                    await self._socket.send_bytes(message)
                else:
                    await self._socket.send_str(message)

    async def _receive(self) -> None:
        async for message in self._socket:
            if self._is_late:
                raise MediaSocketFailed("the platform does not read the call's audio")
            if message.type is aiohttp.WSMsgType.BINARY:
                self._media.play(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT:
                try:
                    command = MEDIA_COMMANDS.decode(message.data)
                except ValueError as error:
                    raise MediaSocketFailed("the platform sent a message that is not understood") from error
                if isinstance(command, Mark):
                    self._media.mark(command.mark.name)
                else:
                    self._media.clear()
