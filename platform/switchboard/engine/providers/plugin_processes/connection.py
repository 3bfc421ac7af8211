"""Requests to a plugin's process over its socket: many at once, each with its own replies."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

import msgspec

from switchboard.engine.providers.plugin_processes.interface import RemoteMethod
from switchboard.engine.providers.plugin_processes.messages import (
    WINDOW,
    Audio,
    Cancel,
    ConnectionLost,
    Credit,
    Done,
    EndProcess,
    Failed,
    Finalize,
    Item,
    MessageChannel,
    Opened,
    Ping,
    Pong,
    Reply,
    Request,
    ToChild,
    ToHost,
)
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, Transcript

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
            self._failure = (
                TimeoutError(reply.message)
                if reply.kind == "timeout"
                else ProviderError(
                    reply.message,
                    code=reply.code,
                    retryable=reply.retryable,
                    retry_after_seconds=reply.retry_after_seconds,
                )
            )
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


class PluginConnection:
    """Connection to a child whose provider is open."""

    def __init__(self, channel: MessageChannel[ToChild, ToHost], on_failure: Callable[[Failed], object]) -> None:
        self._channel = channel
        self._on_failure = on_failure
        self._ids = count(1)
        self._exchanges: dict[int, RequestExchange] = {}
        self._pong = asyncio.Event()
        self._failure: ProviderError | None = None

    @property
    def is_idle(self) -> bool:
        """True if no request is under way."""
        return not self._exchanges

    async def receive(self) -> None:
        """Hand the child's messages to the requests that wait for them. Raises `ConnectionLost`."""
        while True:
            message = await self._channel.receive()
            if isinstance(message, Failed):
                self._on_failure(message)
            match message:
                case Pong():
                    self._pong.set()
                case Credit() if message.id in self._exchanges:
                    self._exchanges[message.id].take_credit(message.count)
                case Opened() | Item() | Done() | Failed() if message.id in self._exchanges:
                    self._exchanges[message.id].put(message)
                case _:
                    pass  # about a request that has been canceled

    def fail(self, failure: ProviderError) -> None:
        """End every request with this failure, and refuse further ones."""
        self._failure = failure
        for number, exchange in self._exchanges.items():
            exchange.put(Failed(number, failure.message, failure.code, failure.retryable))
        self._channel.close()

    async def ping(self) -> None:
        """Wait until the child's event loop has run. Raises `ConnectionLost`."""
        self._pong.clear()
        await self._channel.send(Ping())
        await self._pong.wait()

    async def stop(self) -> None:
        """Ask the child to close its provider and to end."""
        with suppress(ConnectionLost):
            await self._channel.send(EndProcess())

    async def call(self, method: RemoteMethod, arguments: dict[str, Any]) -> Any:
        """Call a method and return its result. Raises `ProviderError`, and `TimeoutError` if the method does."""
        exchange = await self._start(method, arguments)
        try:
            reply = await exchange.next()
            assert isinstance(reply, Done)  # noqa: S101  nothing else ends the exchange without an exception
            return _parse(method, reply.value)
        finally:
            await exchange.close()

    async def stream(self, method: RemoteMethod, arguments: dict[str, Any]) -> AsyncIterator[Any]:
        """Call a method and yield its items. Closing the iterator cancels the request. Raises as `call` does."""
        exchange = await self._start(method, arguments)
        try:
            while isinstance(reply := await exchange.next(), Item):
                yield _parse(method, reply.value)
        finally:
            await exchange.close()

    async def transcribe(self, method: RemoteMethod, arguments: dict[str, Any]) -> SpeechToTextStream:
        """Open a transcription. Raises as `call` does."""
        exchange = await self._start(method, arguments)
        try:
            await exchange.next()
        except BaseException:
            await exchange.close()
            raise
        return _RemoteTranscription(exchange, method)

    async def _start(self, method: RemoteMethod, arguments: dict[str, Any]) -> RequestExchange:
        """Send a request. Raises `TypeError` or `ValueError` for arguments that no message can hold."""
        if self._failure is not None:
            raise self._failure
        number = next(self._ids)
        exchange = self._exchanges[number] = RequestExchange(self._channel, number, self._exchanges.pop)
        try:
            with suppress(ConnectionLost):  # the connection's failure is the reply
                await self._channel.send(Request(number, method.name, arguments))
        except BaseException:
            await exchange.close()
            raise
        return exchange


class _RemoteTranscription(SpeechToTextStream):
    """A transcription in a plugin's process."""

    def __init__(self, exchange: RequestExchange, method: RemoteMethod) -> None:
        self._exchange = exchange
        self._method = method

    async def send(self, audio: bytes) -> None:
        await self._exchange.send(audio)

    async def finalize(self) -> None:
        await self._exchange.send(None)

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while isinstance(reply := await self._exchange.next(), Item):
            yield _parse(self._method, reply.value)

    async def close(self) -> None:
        await self._exchange.close()


def _parse(method: RemoteMethod, value: msgspec.Raw) -> Any:
    """Return a result or an item as the method's type. Raises `ProviderError`."""
    try:
        return method.result.validate_python(msgspec.msgpack.decode(value))
    except (ValueError, msgspec.MsgspecError):
        # The message of the error has the value, which may be a caller's data.
        raise ProviderError(f"{method.name} returned something that the plugin API does not allow") from None
