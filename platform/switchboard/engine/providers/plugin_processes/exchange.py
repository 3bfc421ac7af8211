"""One request to a plugin's process, and its replies."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from switchboard.engine.providers.plugin_processes.messages import (
    WINDOW,
    Audio,
    Cancel,
    ConnectionLost,
    Credit,
    Done,
    Failed,
    Finalize,
    Item,
    MessageChannel,
    Reply,
    Request,
    ToChild,
    ToHost,
)
from switchboard.plugin_sdk import ProviderError

MAX_UNTAKEN: Final = 500
"""Pieces of audio that a transcriber may leave untaken: ten seconds of a call's frames."""


class RequestExchange:
    """A request that is under way. Its replies are read by one task; any task may close it."""

    def __init__(self, channel: MessageChannel[ToChild, ToHost], number: int, on_end: Callable[[int], object]) -> None:
        self._channel = channel
        self._number = number
        self._on_end = on_end
        self._replies: asyncio.Queue[Reply | None] = asyncio.Queue()
        self._consumed = 0
        self._untaken = 0
        self._ended = False
        self._failure: Exception | None = None

    async def start(self, method: str, arguments: dict[str, Any]) -> None:
        """Send the request. Raises `TypeError` or `ValueError` for arguments that no message can hold."""
        with suppress(ConnectionLost):  # the connection's failure is the reply
            await self._channel.send(Request(self._number, method, arguments))

    def put(self, reply: Reply) -> None:
        """Take a reply of the child."""
        self._replies.put_nowait(reply)

    def take_credit(self, count: int) -> None:
        """Take note that the child has consumed input."""
        self._untaken -= count

    async def next(self) -> Reply | None:
        """Return the next reply, the last one too, and then None. Raises the failure that a reply is."""
        if self._ended:
            return None
        reply = await self._replies.get()
        if isinstance(reply, Failed):
            self._failure = _restore(reply)
            self._end()
            raise self._failure
        if reply is None or isinstance(reply, Done):
            self._end()
        elif isinstance(reply, Item):
            self._consumed += 1
            if self._consumed % (WINDOW // 2) == 0:
                with suppress(ConnectionLost):
                    await self._channel.send(Credit(self._number, WINDOW // 2))
        return reply

    async def send(self, audio: bytes | None) -> None:
        """Send audio of a transcription; None is the end of an utterance. Raises `ProviderError` if it is lost."""
        if isinstance(self._failure, ProviderError):
            raise self._failure
        if self._ended:
            return
        if self._untaken >= MAX_UNTAKEN:
            raise ProviderError("the plugin's process does not take the caller's audio")
        self._untaken += 1
        with suppress(ConnectionLost):  # the connection's failure is the reply
            await self._channel.send(Finalize(self._number) if audio is None else Audio(self._number, audio))

    async def close(self) -> None:
        """Cancel the request, unless it has ended."""
        if not self._ended:
            self._end()
            self._replies.put_nowait(None)
            with suppress(ConnectionLost):
                await self._channel.send(Cancel(self._number))

    def _end(self) -> None:
        self._ended = True
        self._on_end(self._number)


def _restore(reply: Failed) -> Exception:
    if reply.kind == "timeout":
        return TimeoutError(reply.message)
    return ProviderError(
        reply.message,
        code=reply.code,
        retryable=reply.retryable,
        retry_after_seconds=reply.retry_after_seconds,
    )
