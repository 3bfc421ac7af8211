"""Containment of plugins' code: whatever a provider raises is a failure of that provider and of nothing else.

`contain` derives a class whose methods of the SDK's contract call the plugin's. An exception that the contract does not
name becomes a `ProviderError` with the plugin's name and version, so that callers fail over as after any failure. So do
a result out of bounds (`bounds.py`) and a method that does not return.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

import structlog

from switchboard.engine.providers.bounds import (
    BOUNDS,
    DEADLINES,
    OutOfBounds,
    bound_frame,
    bound_media,
    bound_transcripts,
)
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import locate_error
from switchboard.plugin_sdk import (
    Frame,
    InvalidCallback,
    MediaCodec,
    MediaEvent,
    OutcomeUnknown,
    Provider,
    ProviderError,
    ProviderSettings,
    SpeechToTextStream,
    Transcript,
)
from switchboard.plugin_sdk.method_signatures import list_contract_methods
from switchboard.plugin_sdk.registry import InvalidSettings, Plugin

logger = structlog.get_logger()
CONTRACT: Final = (ProviderError, InvalidCallback, InvalidSettings, TimeoutError)
"""Exceptions that a provider may raise. Its time limits are failures, too."""
UNREPEATABLE: Final = frozenset({"place_call", "send_text_message", "start_warm_transfer"})
"""Methods of carriers that reach a person. A fault may come after the carrier has acted, so nobody repeats them."""
Method = Callable[..., Any]
ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])


class PluginFault(ProviderError):
    """Failure for an exception, or a result, that the contract of `method` does not allow."""

    def __init__(self, message: str, method: str) -> None:
        super().__init__(message)
        self.method = method


@dataclass(frozen=True, slots=True)
class _Origin:
    """A method of a plugin, for messages. `signature` is the SDK's, of a method whose results have bounds."""

    plugin: Plugin
    provider: type[Provider[ProviderSettings]]
    method: str
    signature: inspect.Signature | None

    def fail(self, error: Exception) -> ProviderError:
        """Log a plugin's exception, count it, and return the failure that it is.

        The log has the places in the code, and neither message nor variables, which may be a caller's data.
        """
        name, version = self.plugin.distribution, self.plugin.version
        metrics.plugin_exceptions.labels(name, self.provider.name, self.method).inc()
        logger.error(
            "a plugin raised an exception",
            plugin=name,
            version=version,
            provider=self.provider.name,
            method=self.method,
            error=type(error).__name__,
            at=locate_error(error),
        )
        place = f"{self.method} of {name} {version}"
        fault = f"{place} returned {error}" if isinstance(error, OutOfBounds) else f"{type(error).__name__} in {place}"
        return self.create_failure(fault)

    def create_failure(self, fault: str) -> ProviderError:
        """Return the failure for a fault, whose outcome may be unknown."""
        message = f"{self.provider.title} failed: {fault}"
        return OutcomeUnknown(message) if self.method in UNREPEATABLE else PluginFault(message, self.method)

    def bound(self, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any) -> Any:
        """Return a result, or a stream, within the bounds of the method. Raises `OutOfBounds`."""
        if self.signature is None:
            return result
        bound = self.signature.bind(*arguments, **options)
        return BOUNDS[self.method](arguments[0], bound.arguments, result)


def contain(provider: type[ProviderT], plugin: Plugin) -> type[ProviderT]:
    """Return the provider's class with its methods contained; it keeps its name."""
    contract = list_contract_methods(provider)
    signatures = {name: inspect.signature(getattr(base, name)) for name, base in contract.items() if name in BOUNDS}
    contained = {
        name: _contain_method(provider, _Origin(plugin, provider, name, signatures.get(name)))
        for name in ("__init__", *contract)
    }
    return type(provider.__name__, (provider,), {"__module__": provider.__module__, **contained})


def _contain_method(provider: type[Provider[ProviderSettings]], origin: _Origin) -> Method:
    name = origin.method
    implementation: Method = getattr(provider, name)
    if inspect.isasyncgenfunction(implementation):

        @wraps(implementation)
        async def stream(*args: Any, **options: Any) -> AsyncIterator[Any]:
            items = origin.bound(args, options, getattr(provider, name)(*args, **options))
            async for item in _contain_stream(origin, items):
                yield item

        return stream
    if inspect.iscoroutinefunction(implementation):

        @wraps(implementation)
        async def run(*args: Any, **options: Any) -> Any:
            with _contain_errors(origin):
                return origin.bound(args, options, await _limit(origin, getattr(provider, name)(*args, **options)))

        return run

    @wraps(implementation)
    def call(*args: Any, **options: Any) -> Any:
        with _contain_errors(origin):
            result = getattr(provider, name)(*args, **options)
            if isinstance(result, MediaCodec):
                return _ContainedCodec(origin, result)
            if inspect.isawaitable(result):
                return _contain_result(origin, result)
            result = origin.bound(args, options, result)
        return _contain_stream(origin, result) if isinstance(result, AsyncIterator) else result

    return call


async def _contain_result(origin: _Origin, result: Awaitable[Any]) -> Any:
    with _contain_errors(origin):
        return await _limit(origin, result)


async def _limit(origin: _Origin, result: Awaitable[Any]) -> Any:
    """Wait for a method's result, within the method's time limit."""
    seconds = DEADLINES.get(origin.method)
    try:
        async with asyncio.timeout(seconds) as deadline:
            value = await result
    except TimeoutError:
        if not deadline.expired():
            raise
        plugin = origin.plugin
        raise origin.create_failure(
            f"{origin.method} of {plugin.distribution} {plugin.version} did not return within {seconds:g} seconds"
        ) from None
    return _ContainedStream(origin, value) if isinstance(value, SpeechToTextStream) else value


async def _contain_stream(origin: _Origin, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
    # Providers' streams are generators, which can be closed.
    with _contain_errors(origin):
        async with aclosing(items):  # type: ignore[type-var]
            async for item in items:
                yield item


@contextmanager
def _contain_errors(origin: _Origin) -> Iterator[None]:
    """Turn what a plugin raises within the block, and its contract does not name, into a `ProviderError`."""
    try:
        yield
    except CONTRACT:
        raise
    except Exception as error:
        raise origin.fail(error) from error


class _ContainedCodec(MediaCodec):
    """A carrier's codec, contained."""

    def __init__(self, origin: _Origin, codec: MediaCodec) -> None:
        self._origin = origin
        self._codec = codec
        self.announces_end = codec.announces_end

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        try:
            return bound_media(self._codec.decode(message))
        except ValueError:  # a message that the carrier would not send
            raise
        except Exception as error:
            raise self._origin.fail(error) from error

    def encode(self, audio: bytes) -> Frame:
        with _contain_errors(self._origin):
            return bound_frame(self._codec.encode(audio))

    def clear(self) -> Frame:
        with _contain_errors(self._origin):
            return bound_frame(self._codec.clear())

    def mark(self, name: str) -> Frame:
        with _contain_errors(self._origin):
            return bound_frame(self._codec.mark(name))


class _ContainedStream(SpeechToTextStream):
    """A transcriber's stream, contained."""

    def __init__(self, origin: _Origin, stream: SpeechToTextStream) -> None:
        self._origin = origin
        self._stream = stream

    async def send(self, audio: bytes) -> None:
        await _contain_result(self._origin, self._stream.send(audio))

    async def finalize(self) -> None:
        await _contain_result(self._origin, self._stream.finalize())

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        with _contain_errors(self._origin):
            async for transcript in bound_transcripts(aiter(self._stream)):
                yield transcript

    async def close(self) -> None:
        await _contain_result(self._origin, self._stream.close())
