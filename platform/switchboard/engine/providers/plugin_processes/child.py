"""A plugin's process: creates one provider and serves the requests of the host, until it ends or the host does."""

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterable
from contextlib import aclosing, suppress
from importlib.metadata import EntryPoint
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import structlog
import uvloop
from msgspec import Raw

from switchboard.engine.providers.containment import PluginFault, contain
from switchboard.engine.providers.plugin_processes.interface import RemoteMethod, Shape, list_remote_methods
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
    Ready,
    Request,
    Start,
    ToChild,
    ToHost,
    encode_value,
)
from switchboard.foundation.observability import logs
from switchboard.plugin_sdk import NetworkPolicy, Provider, ProviderError, ProviderSettings, SpeechToTextStream
from switchboard.plugin_sdk.registry import Capability, InvalidSettings, Plugin, Registry, parse_settings

logger = structlog.get_logger()

DATA_FACTOR: Final = 4
"""Writable address space for each byte of the memory limit. Threads reserve stacks that they do not use, and the host
watches what is used; this stops a single huge allocation, which would be faster than the host.
"""


class _RunningRequest:
    """A request that is being served. Each item of its stream needs a credit of the host."""

    def __init__(
        self, channel: MessageChannel[ToHost, ToChild], provider: Provider[ProviderSettings], request: Request
    ) -> None:
        self._channel = channel
        self._provider = provider
        self._request = request
        self._credit = asyncio.Semaphore(WINDOW)
        self._input: asyncio.Queue[Audio | Finalize] = asyncio.Queue()

    async def run(self, method: RemoteMethod) -> None:
        """Call the method and send its result, or its failure."""
        number = self._request.id
        with suppress(ConnectionLost):  # the process ends
            try:
                value = await self._call(method, method.parse_arguments(self._request.arguments))
                await self._channel.send(Done(number, Raw(encode_value(value))))
            except ProviderError as error:
                await self._channel.send(_report(number, error))
            except TimeoutError as error:
                await self._channel.send(Failed(number, str(error), kind="timeout"))
            except (TypeError, ValueError) as error:  # a result that no message can hold
                message = f"{self._provider.title} returned what cannot be sent: {error}"
                await self._channel.send(Failed(number, message))

    def take(self, message: Credit | Audio | Finalize) -> None:
        """Take a message of the host about the request."""
        if isinstance(message, Credit):
            for _ in range(message.count):
                self._credit.release()
        else:
            self._input.put_nowait(message)

    async def _call(self, method: RemoteMethod, arguments: dict[str, Any]) -> Any:
        result = getattr(self._provider, method.name)(**arguments)
        if method.shape is Shape.VALUE:
            return await result
        if method.shape is Shape.STREAM:
            async with aclosing(result):
                await self._send_items(result)
        else:
            await self._transcribe(await result)
        return None

    async def _send_items(self, items: AsyncIterable[object]) -> None:
        async for item in items:
            await self._credit.acquire()
            await self._channel.send(Item(self._request.id, Raw(encode_value(item))))

    async def _transcribe(self, stream: SpeechToTextStream) -> None:
        try:
            await self._channel.send(Opened(self._request.id))
            async with asyncio.TaskGroup() as tasks:
                feeding = tasks.create_task(self._feed(stream))
                await self._send_items(stream)
                feeding.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            await stream.close()

    async def _feed(self, stream: SpeechToTextStream) -> None:
        while True:
            message = await self._input.get()
            if isinstance(message, Audio):
                await stream.send(message.audio)
            else:
                await stream.finalize()
            await self._channel.send(Credit(self._request.id, 1))


class _Child:
    """Requests that are being served, each in a task of its own."""

    def __init__(
        self, channel: MessageChannel[ToHost, ToChild], provider: Provider[ProviderSettings], base: type
    ) -> None:
        self._channel = channel
        self._provider = provider
        self._methods = list_remote_methods(base)
        self._running: dict[int, tuple[_RunningRequest, asyncio.Task[None]]] = {}

    async def serve(self) -> None:
        """Serve requests until the host says stop. Raises `ConnectionLost`."""
        while not isinstance(message := await self._channel.receive(), EndProcess):
            if isinstance(message, Ping):
                await self._channel.send(Pong())
            elif isinstance(message, Request):
                self._start(message)
            elif not isinstance(message, Start) and message.id in self._running:
                request, task = self._running[message.id]
                if isinstance(message, Cancel):
                    task.cancel()
                else:
                    request.take(message)
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._provider.close()

    def _start(self, request: Request) -> None:
        running = _RunningRequest(self._channel, self._provider, request)
        task = asyncio.create_task(running.run(self._methods[request.method]))
        self._running[request.id] = running, task
        task.add_done_callback(lambda _: self._running.pop(request.id))


def _report(number: int, error: ProviderError) -> Failed:
    """Return the message about a failure. The host counts what a contract does not allow: nobody reads this process's
    metrics.
    """
    method = error.method if isinstance(error, PluginFault) else ""
    return Failed(
        number,
        error.message,
        error.code,
        error.retryable,
        faulty_method=method,
        retry_after_seconds=error.retry_after_seconds,
    )


def _create_provider(start: Start) -> tuple[Provider[ProviderSettings], type[Provider[ProviderSettings]]]:
    """Create the provider. Raises `ProviderError`."""
    base, registry = Capability(start.capability).base_class, Registry()
    loaded = registry.add(start.plugin, EntryPoint(start.plugin, start.module, "").load())
    kind = registry.find_provider_class(base, start.name)
    if kind is None:
        raise ProviderError("; ".join(loaded.faults) or f"{start.distribution} provides no {start.name}")
    plugin = Plugin(start.plugin, start.distribution, start.version)
    provider = contain(kind, plugin)(parse_settings(kind.Settings, start.settings))
    provider.data_dir = Path(start.data_dir)
    networks = tuple(ip_network(network) for network in start.allowed_networks)
    provider.network_policy = NetworkPolicy(networks, start.own_url)
    return provider, base


async def _serve(own: socket.socket) -> None:
    channel = await MessageChannel[ToHost, ToChild].from_socket(own, ToChild)
    start = await channel.receive()
    if not isinstance(start, Start):
        return
    logs.configure_logging(start.log_level)
    # A core dump would have the provider's secrets and callers' data.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_FACTOR * start.memory_bytes, DATA_FACTOR * start.memory_bytes))
    try:
        provider, base = _create_provider(start)
        await provider.open()
    except ProviderError as error:
        await channel.send(_report(0, error))
        return
    except (InvalidSettings, TimeoutError, ImportError) as error:
        await channel.send(Failed(0, f"{type(error).__name__}: {error}"))
        return
    await channel.send(Ready(getattr(provider, "audio_format", None)))
    await _Child(channel, provider, base).serve()


def _die_with_the_host() -> None:
    """Wait, in a thread, until the host's end of standard input is closed, and end this process group.

    A blocked event loop would not notice the end of its socket.
    """
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the process. The socket's file descriptor is the only argument; standard input is open as long as the host
    lives.
    """
    threading.Thread(target=_die_with_the_host, name="lifeline", daemon=True).start()
    with suppress(ConnectionLost), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    # Threads of the plugin that do not end must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
