"""A plugin's process as the host sees it (started, watched, restarted, and stopped), and the provider that asks it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import structlog

from switchboard.engine.providers.plugin_processes.connection import PluginConnection
from switchboard.engine.providers.plugin_processes.interface import RemoteMethod, Shape, list_remote_methods
from switchboard.engine.providers.plugin_processes.messages import (
    ConnectionLost,
    Failed,
    MessageChannel,
    Ready,
    Start,
    ToChild,
    ToHost,
)
from switchboard.engine.providers.plugin_processes.operating_system import ChildProcess, start_child
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import AudioFormat, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Capability

logger = structlog.get_logger()
ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])

ENDED, STOPPED, TOO_LARGE = "ended", "was stopped", "needed too much memory"
"""Reasons for the end of a process."""
START_SECONDS: Final = 15.0
STOP_SECONDS: Final = 5.0
"""Time for the provider's `close`. The process is killed then."""
LOOK_SECONDS: Final = 0.25
"""Time between two looks at the memory of the process."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""A process that has lived so long is restarted after the shortest pause."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of plugins' processes. `count` is the number of those that one server or worker runs at once.

    A process that does not run its event loop for `silence_seconds` is killed.
    """

    count: int = 16
    memory_bytes: int = 1024**3
    silence_seconds: float = 10.0


@dataclass(slots=True)
class PluginProcesses:
    """The plugins' processes of this process. At most `limits.count` run; idle ones make way for others."""

    limits: ProcessLimits = field(default_factory=ProcessLimits)
    log_level: str = "INFO"
    running: list["PluginProcess"] = field(default_factory=list)
    _claiming: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def claim(self, process: "PluginProcess") -> None:
        """Let a process run. Raises `ProviderError` if all others are busy."""
        async with self._claiming:
            if len(self.running) >= self.limits.count:
                idle = min(
                    (other for other in self.running if other.is_idle), key=lambda other: other.used_at, default=None
                )
                if idle is None:
                    raise ProviderError(
                        f"{self.limits.count} processes of plugins are busy, and SWITCHBOARD_PLUGIN_PROCESSES allows "
                        "no more"
                    )
                await idle.stop()
            self.running.append(process)

    def release(self, process: "PluginProcess") -> None:
        """Take note that a process has ended."""
        if process in self.running:
            self.running.remove(process)


@dataclass(slots=True)
class _Child:
    process: ChildProcess
    connection: PluginConnection
    audio_format: AudioFormat | None
    started_at: float


class PluginProcess:
    """The process of one provider of one organization. It starts with the first request."""

    def __init__(self, start: Start, title: str, processes: PluginProcesses) -> None:
        self._start_message = start
        self._title = title
        self._processes = processes
        self._child: _Child | None = None
        self._starting: asyncio.Task[_Child] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE_SECONDS
        self._start_at = 0.0
        self._failure: ProviderError | None = None
        self.used_at = 0.0

    @property
    def is_idle(self) -> bool:
        """True if the process runs and no request is under way."""
        return self._child is not None and self._child.connection.is_idle

    @property
    def pid(self) -> int | None:
        """Id of the running process; None while none runs."""
        return self._child.process.pid if self._child is not None else None

    async def connect(self) -> PluginConnection:
        """Return the connection to the running process; start it if need be. Raises `ProviderError`."""
        return (await self._run()).connection

    async def open(self) -> AudioFormat | None:
        """Start the process and return the audio format of its provider, if it has one. Raises `ProviderError`."""
        return (await self._run()).audio_format

    async def stop(self) -> None:
        """Close the provider and end the process. The next request starts another one."""
        if self._watching is not None:
            if self._child is not None:
                self._watching.cancel()
            await asyncio.wait((self._watching,))
        for task in (self._restarting, self._starting):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
        if (child := self._child) is not None:
            await child.connection.stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await child.process.wait()
            await self._end(child, STOPPED)

    async def _run(self) -> _Child:
        """Return the running process; start it if need be. Raises `ProviderError`."""
        self.used_at = time.monotonic()
        if self._child is not None:
            return self._child
        if self._starting is None:
            if self._failure is not None and time.monotonic() < self._start_at:
                raise ProviderError(self._failure.message, code=self._failure.code)
            self._starting = asyncio.create_task(self._start())
        starting = self._starting
        # The start goes on if the caller does not wait for it, because another provider has taken over.
        await asyncio.wait((starting,))
        if starting.cancelled():
            raise self._fail(STOPPED)
        return starting.result()

    async def _start(self) -> _Child:
        """Start the process, and wait until its provider is open. Raises `ProviderError`."""
        try:
            await self._processes.claim(self)
            try:
                self._child = child = await self._launch()
            except BaseException as error:
                self._processes.release(self)
                if isinstance(error, ProviderError):
                    self._pause_after(error)
                raise
            self._watching = asyncio.create_task(self._watch(child))
            return child
        finally:
            self._starting = None

    async def _launch(self) -> _Child:
        try:
            process, own = await start_child()
        except OSError as error:
            raise self._fail(f"cannot be started: {error}") from error
        try:
            channel = await MessageChannel[ToChild, ToHost].from_socket(own, ToHost)
            try:
                audio_format = await self._open_provider(channel)
            except BaseException:
                channel.close()
                raise
        except BaseException:
            await process.kill()
            raise
        return _Child(process, PluginConnection(channel, self._count_fault), audio_format, time.monotonic())

    async def _open_provider(self, channel: MessageChannel[ToChild, ToHost]) -> AudioFormat | None:
        try:
            async with asyncio.timeout(START_SECONDS):
                await channel.send(self._start_message)
                reply = await channel.receive()
        except TimeoutError:
            raise self._fail(f"was not ready within {START_SECONDS:g} seconds") from None
        except ConnectionLost:
            raise self._fail("ended while it started") from None
        if isinstance(reply, Failed):
            self._count_fault(reply)
            raise ProviderError(reply.message, code=reply.code, retryable=reply.retryable)
        return reply.audio_format if isinstance(reply, Ready) else None

    async def _watch(self, child: _Child) -> None:
        """Wait until the process ends, hangs, or needs too much memory; end it, and start another one."""
        receiving = asyncio.create_task(child.connection.receive())
        pinging = asyncio.create_task(self._keep_pinging(child.connection))
        measuring = asyncio.create_task(self._measure(child.process))
        tasks: dict[asyncio.Task[Any], str] = {
            receiving: ENDED,
            measuring: TOO_LARGE,
            pinging: f"did not respond for {self._processes.limits.silence_seconds:g} seconds",
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if time.monotonic() - child.started_at >= STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        pause = self._pause
        self._pause_after(self._fail("is being restarted"))
        reason = next(reason for task, reason in tasks.items() if task in done)
        self._failure = await self._end(child, ENDED if child.process.has_ended else reason)
        self._restarting = asyncio.create_task(self._restart(pause))

    async def _end(self, child: _Child, reason: str) -> ProviderError:
        """Kill what is left of the process, and fail its requests; return the failure."""
        self._child = None
        start = self._start_message
        status = await child.process.kill()
        self._processes.release(self)
        if reason == ENDED:
            reason = f"ended with {status}"
        failure = self._fail(reason)
        child.connection.fail(failure)
        if reason != STOPPED:
            metrics.plugin_process_losses.labels(start.distribution, start.name).inc()
            logger.error(
                "a plugin's process was lost",
                plugin=start.distribution,
                version=start.version,
                provider=start.name,
                reason=reason,
            )
        return failure

    def _count_fault(self, failure: Failed) -> None:
        """Count a failure that the contract of a method does not allow."""
        if failure.faulty_method:
            start = self._start_message
            metrics.plugin_exceptions.labels(start.distribution, start.name, failure.faulty_method).inc()

    def _fail(self, reason: str) -> ProviderError:
        start = self._start_message
        return ProviderError(f"{self._title} failed: the process of {start.distribution} {start.version} {reason}")

    def _pause_after(self, failure: ProviderError) -> None:
        """Refuse requests with this failure for a while, so that a plugin that ends at once does not start at once."""
        self._failure = failure
        self._start_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    async def _restart(self, pause: float) -> None:
        await asyncio.sleep(pause)
        self._failure = None
        with suppress(ProviderError):  # the next request tries again
            await self._run()

    async def _keep_pinging(self, connection: PluginConnection) -> None:
        """Return once the child's event loop has not run for too long."""
        seconds = self._processes.limits.silence_seconds
        try:
            while True:
                async with asyncio.timeout(seconds):
                    await connection.ping()
                await asyncio.sleep(seconds / 10)
        except TimeoutError:
            return
        except ConnectionLost:
            await asyncio.Event().wait()  # the end of the process is noticed as such

    async def _measure(self, process: ChildProcess) -> None:
        """Return once the process needs more memory than it may, or has ended."""
        limit = self._processes.limits.memory_bytes
        while not process.has_ended and process.memory_bytes <= limit:  # noqa: ASYNC110 - only the kernel knows
            await asyncio.sleep(LOOK_SECONDS)


def derive_remote_class(capability: Capability, kind: type[ProviderT], process: PluginProcess) -> type[ProviderT]:
    """Return a class of the capability, with the name and the settings of the plugin's, whose instance runs in this
    process.
    """
    base = capability.base_class
    attributes: dict[str, Any] = {
        "__module__": __name__,
        "name": kind.name,
        "title": kind.title,
        "Settings": kind.Settings,
        "process": process,
        "open": _open,
        "close": _close,
        **{name: _forward(method) for name, method in list_remote_methods(base).items()},
    }
    if (audio_format := getattr(kind, "audio_format", None)) is not None:
        attributes["audio_format"] = audio_format
    return cast("type[ProviderT]", type(kind.__name__, (base,), attributes))


async def _open(self: Any) -> None:
    if (audio_format := await self.process.open()) is not None:
        self.audio_format = audio_format


async def _close(self: Any) -> None:
    await self.process.stop()


def _forward(method: RemoteMethod) -> Any:
    """Return a method that asks the process."""

    async def stream(self: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        connection = await self.process.connect()
        async with aclosing(connection.stream(method, method.bind(arguments, options))) as items:
            async for item in items:
                yield item

    async def transcribe(self: Any, *arguments: Any, **options: Any) -> Any:
        connection = await self.process.connect()
        return await connection.transcribe(method, method.bind(arguments, options))

    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        connection = await self.process.connect()
        return await connection.call(method, method.bind(arguments, options))

    return {Shape.STREAM: stream, Shape.TRANSCRIPTION: transcribe, Shape.VALUE: call}[method.shape]
