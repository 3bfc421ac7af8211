"""Providers whose class runs in a process of its own."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from switchboard.engine.providers.plugin_processes.interface import RemoteMethod, Shape, list_remote_methods
from switchboard.engine.providers.plugin_processes.plugin_process import PluginProcess
from switchboard.plugin_sdk import Provider, ProviderSettings
from switchboard.plugin_sdk.registry import Capability

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])


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
