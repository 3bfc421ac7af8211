"""Containment of plugins' code: whatever a provider raises is a failure of that provider and of nothing else.

`contain` derives a class whose methods of the SDK's contract call the plugin's. An exception that the contract does not
name becomes a `ProviderError` with the plugin's name and version, so that callers fail over as after any failure. So do
a result out of bounds and a method that does not return.
"""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from functools import wraps
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar, get_args

import numpy as np

from switchboard.foundation.observability.extension_faults import record_provider_fault
from switchboard.plugin_sdk import (
    AvailableNumber,
    BoughtNumber,
    BrowserToken,
    BusyTime,
    CalendarChanges,
    CalendarEvent,
    CalendarProvider,
    CalendarWatch,
    CallbackReply,
    ChangeReport,
    ChatEvent,
    ChunkMatch,
    Embeddings,
    Frame,
    InvalidCallback,
    MediaCodec,
    MediaEvent,
    ModelUsage,
    OAuthService,
    OutcomeUnknown,
    Provider,
    ProviderError,
    ProviderSettings,
    ReceivedCallback,
    RecordingStream,
    RemoteCalendar,
    SpeechChunk,
    SpeechToTextStream,
    TelephonyProvider,
    TextDelta,
    TextMessageStatus,
    ToolCall,
    Transcript,
    TurnPrediction,
    TurnReport,
    TurnState,
    Voice,
)
from switchboard.plugin_sdk.method_signatures import list_contract_methods
from switchboard.plugin_sdk.registry import InvalidSettings, Plugin

# Bounds on what providers return, one function for each method: types, sizes, and numbers that the contract implies.
#
# What a plugin returns goes into calls, the database, and other vendors' requests, whose code relies on the contract.

DELTA_CHARACTERS: Final = 100_000
"""Longest part of an answer. A model that does not stream returns the whole answer as one."""
ANSWER_CHARACTERS: Final = 400_000
"""Longest answer: 100,000 tokens."""
ANSWER_EVENTS: Final = 200_000
TOOL_CALLS: Final = 128
SPEECH_SECONDS: Final = 30.0
SECONDS_PER_CHARACTER: Final = 0.5
"""Slow speech has 10 characters a second; spelled numbers and other alphabets need more time for each."""
PIECE_SECONDS: Final = 2.0
"""Longest piece of audio that is converted and resampled at once, while calls wait."""
TRANSCRIPT_CHARACTERS: Final = 20_000
DIMENSIONS: Final = 16_384
PASSAGE_CHARACTERS: Final = 200_000
LISTED: Final = 10_000
ID_CHARACTERS: Final = 1_000
"""Longest id of a carrier. Carriers keep what they need later in their ids."""
CURSOR_CHARACTERS: Final = 2_000

DEADLINES: Final[Mapping[str, float]] = {
    **dict.fromkeys(vars(TelephonyProvider), 60.0),
    **dict.fromkeys(vars(CalendarProvider), 15.0),
    **dict.fromkeys(("check", "transcribe", "list_models", "find_model_ends", "list_voices", "has_voice"), 30.0),
    "close": 10.0,
    "embed": 120.0,
    "search": 60.0,
}
"""Seconds after which a method that nobody else limits has failed; only methods are looked up."""


class OutOfBounds(Exception):
    """A provider returned something that its contract excludes. The message completes "returned …"."""


ValueT = TypeVar("ValueT")
Arguments: TypeAlias = Mapping[str, Any]
DecodedMedia: TypeAlias = bytes | MediaEvent
Bound: TypeAlias = Callable[[Any, Arguments, Any], Any]
"""Takes the provider, the arguments by name, and the result or the stream; returns the same within bounds."""


async def bound_chat(
    _provider: object, arguments: Arguments, events: AsyncIterator[object]
) -> AsyncIterator[ChatEvent]:
    """Yield a model's events."""
    characters = calls = count = 0
    async with aclosing(events):  # type: ignore[type-var] # a generator, which can be closed
        async for event in events:
            count += 1
            if isinstance(event, TextDelta):
                _require(isinstance(event.text, str), "text that is not a string")
                _require(len(event.text) <= DELTA_CHARACTERS, f"{len(event.text)} characters at once")
                characters += len(event.text)
            elif isinstance(event, ToolCall):
                _require(isinstance(event.arguments, dict), "a tool call whose arguments are not an object")
                calls += 1
            else:
                usage = _expect(event, ModelUsage)
                tokens = (usage.input_tokens, usage.output_tokens)
                _require(
                    all(isinstance(number, int) and number >= 0 for number in tokens), "an invalid number of tokens"
                )
                _require(usage.cost is None or (math.isfinite(usage.cost) and usage.cost >= 0), "an invalid cost")
            _require(characters <= ANSWER_CHARACTERS, f"more than {ANSWER_CHARACTERS} characters")
            _require(calls <= TOOL_CALLS, f"more than {TOOL_CALLS} tool calls")
            _require(count <= ANSWER_EVENTS, f"more than {ANSWER_EVENTS} events")
            yield event  # type: ignore[misc] # one of the three


async def bound_speech(
    provider: Any, arguments: Arguments, chunks: AsyncIterator[object]
) -> AsyncIterator[SpeechChunk]:
    """Yield a voice's speech in pieces of whole samples."""
    request, audio_format = arguments["request"], provider.audio_format
    longest = (SPEECH_SECONDS + SECONDS_PER_CHARACTER * len(request.text)) / min(request.speed, 1.0)
    width = 2 if audio_format.encoding == "pcm16" else 1
    piece_bytes = int(PIECE_SECONDS * audio_format.bytes_per_second) // width * width
    seconds, rest = 0.0, b""
    async with aclosing(chunks):  # type: ignore[type-var] # a generator, which can be closed
        async for chunk in chunks:
            audio = _expect(_expect(chunk, SpeechChunk).audio, bytes)
            seconds += len(audio) / audio_format.bytes_per_second
            _require(
                seconds <= longest, f"more than {longest:.0f} seconds of speech for {len(request.text)} characters"
            )
            audio, words = rest + audio, chunk.words  # type: ignore[attr-defined] # checked above
            whole = len(audio) // width * width
            audio, rest = audio[:whole], audio[whole:]
            for start in range(0, max(len(audio), 1), piece_bytes):
                # All words go with the first piece: they are timed from its start.
                yield SpeechChunk(audio[start : start + piece_bytes], words if start == 0 else ())


async def bound_transcripts(transcripts: AsyncIterator[object]) -> AsyncIterator[Transcript]:
    """Yield the transcripts of a transcriber's stream."""
    async for transcript in transcripts:
        known = _expect(transcript, Transcript)
        _require(isinstance(known.text, str), "a transcript whose text is not a string")
        _require(len(known.text) <= TRANSCRIPT_CHARACTERS, f"a transcript of {len(known.text)} characters")
        if known.turn is not None:
            report = _expect(known.turn, TurnReport)
            _require(report.state in get_args(TurnState), "a turn in an unknown state")
            _require(
                isinstance(report.probability, float | int) and 0 <= report.probability <= 1,
                "a turn whose probability is not from 0 to 1",
            )
        yield known


def bound_embeddings(_provider: object, arguments: Arguments, result: object) -> Embeddings:
    """Return embeddings that have one finite vector for each text, all of one length."""
    embeddings, texts = _expect(result, Embeddings), arguments["texts"]
    _require(bool(embeddings.model) and isinstance(embeddings.model, str), "vectors without the name of their model")
    _require(len(embeddings.vectors) == len(texts), f"{len(embeddings.vectors)} vectors for {len(texts)} texts")
    lengths = {len(vector) for vector in embeddings.vectors}
    dimensions = " and ".join(map(str, sorted(lengths)[:3])) or "no"
    _require(len(lengths) == 1 and 0 < min(lengths) <= DIMENSIONS, f"vectors of {dimensions} dimensions")
    try:
        finite = bool(np.isfinite(np.asarray(embeddings.vectors, dtype=np.float64)).all())
    except (TypeError, ValueError):
        finite = False
    _require(finite, "vectors with something that is not a finite number")
    return embeddings


def bound_matches(_provider: object, arguments: Arguments, result: object) -> Sequence[ChunkMatch]:
    """Return at most as many matches as were asked for."""
    matches = [_expect(match, ChunkMatch) for match in _list(result, arguments["limit"])]
    for match in matches:
        _require(isinstance(match.text, str) and len(match.text) <= PASSAGE_CHARACTERS, "a passage that is too long")
        _require(
            isinstance(match.score, float | int) and math.isfinite(match.score), "a score that is not a finite number"
        )
    return matches


def bound_model_ends(_provider: object, arguments: Arguments, result: object) -> Mapping[str, date]:
    """Return the ends of the models that were asked for."""
    ends = _expect(result, Mapping)
    return {model: _expect(ends[model], date) for model in arguments["models"] if model in ends}


def bound_prediction(_provider: object, _arguments: Arguments, result: object) -> TurnPrediction:
    """Return a prediction with a probability."""
    prediction = _expect(result, TurnPrediction)
    probability = prediction.probability
    _require(isinstance(probability, float | int) and 0 <= probability <= 1, "an invalid probability")
    again = prediction.ask_again_seconds
    _require(again is None or (isinstance(again, float | int) and 0 < again < math.inf), "an invalid time")
    return prediction


def bound_id(_provider: object, _arguments: Arguments, result: object) -> str:
    """Return a carrier's id."""
    identifier = _expect(result, str)
    _require(0 < len(identifier) <= ID_CHARACTERS, f"an id of {len(identifier)} characters")
    return identifier


def bound_text_status(_provider: object, arguments: Arguments, result: object) -> TextMessageStatus:
    """Return the status of the text message that was asked for."""
    report = _expect(result, TextMessageStatus)
    _require(report.carrier_text_id == arguments["carrier_text_id"], "the status of another text message")
    return report


def bound_busy_times(_provider: object, _arguments: Arguments, result: object) -> Sequence[BusyTime]:
    """Return busy times, all of them: a part would leave times free that are not."""
    busy = [_expect(item, BusyTime) for item in _list(result, LISTED + 1)]
    _require(len(busy) <= LISTED, f"more than {LISTED} busy times")
    for time in busy:
        _require_period(time.starts_at, time.ends_at)
    return busy


def bound_event(_provider: object, _arguments: Arguments, result: object) -> CalendarEvent:
    """Return an event of a calendar, whose id and version can be saved."""
    event = _expect(result, CalendarEvent)
    for text in (event.id, event.version):
        _require(isinstance(text, str) and len(text) <= ID_CHARACTERS, "an event whose id or version is no short text")
    _require_period(event.starts_at, event.ends_at)
    return event


def bound_changes(_provider: object, _arguments: Arguments, result: object) -> CalendarChanges:
    """Return what a calendar says of its changes, with a cursor that can be saved."""
    changes = _expect(result, CalendarChanges)
    _require_saved_text(changes.cursor, CURSOR_CHARACTERS, "an invalid cursor")
    return changes


def bound_watch(_provider: object, _arguments: Arguments, result: object) -> CalendarWatch:
    """Return the watch of a calendar, whose id can be saved."""
    watch = _expect(result, CalendarWatch)
    _require_saved_text(watch.id, ID_CHARACTERS, "a watch with an invalid id")
    _require_moment(watch.expires_at)
    return watch


def _require_saved_text(text: object, most: int, otherwise: str) -> None:
    _require(isinstance(text, str) and len(text) <= most and "\0" not in text, otherwise)


def _require_period(starts_at: object, ends_at: object) -> None:
    _require(_require_moment(starts_at) <= _require_moment(ends_at), "a period that ends before it starts")


def _require_moment(value: object) -> datetime:
    moment = _expect(value, datetime)
    _require(moment.utcoffset() is not None, "a time without a zone")
    return moment


def bound_media(media: object) -> DecodedMedia | None:
    """Return what a codec has decoded. Called for every 20 ms of every call."""
    if media is None or isinstance(media, DecodedMedia):
        return media
    raise OutOfBounds(f"media of type {type(media).__name__}")


def bound_frame(frame: object) -> Frame:
    """Return what a codec has encoded. Called for every 20 ms of every call."""
    if isinstance(frame, str | bytes):
        return frame
    raise OutOfBounds(f"a frame of type {type(frame).__name__}")


def _require_type(kind: type) -> Bound:
    """Return a bound that only checks the type of the result."""
    return lambda _provider, _arguments, result: _expect(result, kind)


def _require_items(kind: type) -> Bound:
    """Return a bound for a list: it has at most as many items as were asked for, or 10,000."""
    return lambda _provider, arguments, result: [
        _expect(item, kind) for item in _list(result, arguments.get("limit", LISTED))
    ]


def _allow_none(bound: Bound) -> Bound:
    """Return a bound that lets None pass: the provider has found nothing, or cannot tell."""
    return lambda provider, arguments, result: None if result is None else bound(provider, arguments, result)


BOUNDS: Final[Mapping[str, Bound]] = {
    "chat": bound_chat,
    "synthesize": bound_speech,
    "embed": bound_embeddings,
    "search": bound_matches,
    "list_voices": _require_items(Voice),
    "list_models": _require_items(str),
    "find_model_ends": bound_model_ends,
    "place_call": bound_id,
    "find_call": _allow_none(bound_id),
    "start_warm_transfer": bound_id,
    "send_text_message": bound_id,
    "find_text_status": _allow_none(bound_text_status),
    "search_numbers": _require_items(AvailableNumber),
    "receive": _require_type(ReceivedCallback),
    "instruct": _require_type(CallbackReply),
    "create_media_codec": _require_type(MediaCodec),
    "buy_number": _require_type(BoughtNumber),
    "fetch_recording": _require_type(RecordingStream),
    "create_browser_token": _require_type(BrowserToken),
    "predict": bound_prediction,
    "list_calendars": _require_items(RemoteCalendar),
    "list_busy": bound_busy_times,
    "create_event": bound_event,
    "move_event": bound_event,
    "find_event": _allow_none(bound_event),
    "find_changes": bound_changes,
    "watch": _allow_none(bound_watch),
    "read_report": _require_type(ChangeReport),
    "describe_oauth": _require_type(OAuthService),
}
"""Bounds by the name of the method. Those of transcriptions are in their streams."""


def _list(result: object, limit: int) -> list[object]:
    """Return the first items of a list."""
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise OutOfBounds("something that is not a list")
    return list(islice(result, limit))


def _expect(value: object, kind: type[ValueT]) -> ValueT:
    if not isinstance(value, kind):
        raise OutOfBounds(f"an object of type {type(value).__name__}, not {kind.__name__}")
    return value


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise OutOfBounds(otherwise)


CONTRACT: Final = (ProviderError, InvalidCallback, InvalidSettings, TimeoutError)
"""Exceptions that a provider may raise. Its time limits are failures, too."""
UNREPEATABLE: Final = frozenset(
    {"place_call", "send_text_message", "start_warm_transfer", "create_event", "move_event", "cancel_event"}
)
"""Methods that reach a person, or change a calendar. A fault may come after the provider has acted, so nobody repeats
them.
"""
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
        """Log a plugin's exception, count it, and return the failure that it is."""
        record_provider_fault(self.provider, self.plugin, self.method, error)
        place = f"{self.method} of {self.plugin.distribution} {self.plugin.version}"
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
    if inspect.iscoroutinefunction(inspect.unwrap(implementation)):

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
