"""Redaction of one conversation: what is kept, what the model sees, and numbers that span several utterances."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import structlog
from pydantic import JsonValue

from switchboard.engine.redaction.detectors import CODE_NAMES
from switchboard.engine.redaction.number_words import normalize_numbers
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.plugin_sdk import JsonObject, ProviderError
from switchboard.plugin_sdk.private_data import PrivateDataDetector, RemotePrivateDataDetector, SpokenText

# Private data that services find: asked with a time limit, and remembered for the rest of the conversation.

logger = structlog.get_logger()
SEARCH_SECONDS: Final = 0.2
"""Time that a text waits for its search: the caller's silence after a turn is that much longer in the worst case."""
PAUSE_SECONDS: Final = 5.0
MAX_VALUES: Final = 500


@dataclass(slots=True)
class RedactionMemory:
    """Secrets and values of one conversation, which its agents share.

    `secrets` match what was entered on the keypad. `values` are what remote detectors have found, each with its kind,
    and `value_pattern` finds them. `window` has the caller's last words, and `question` what the agent asked last.
    """

    secrets: list[re.Pattern[str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    value_pattern: re.Pattern[str] | None = None
    window: str = ""
    question: str = ""


class RemoteSearch:
    """Remote detectors of one conversation.

    They find values, not places: the same name comes again in the agent's answer, in a tool's result, and in the entry
    of the transcript, none of which waits for the service.
    """

    def __init__(self, detectors: Sequence[RemotePrivateDataDetector]) -> None:
        self._detectors = detectors
        self._paused_until = dict.fromkeys((detector.name for detector in detectors), 0.0)

    def __bool__(self) -> bool:
        return bool(self._detectors)

    async def search(self, spoken: SpokenText, memory: RedactionMemory) -> None:
        """Ask every detector, and remember what they find. If a detector has no result in time, the results of the
        others stand, and a metric counts the failure.
        """
        found = await asyncio.gather(*(self._ask(detector, spoken) for detector in self._detectors))
        for detector, spans in zip(self._detectors, found, strict=True):
            for start, end in spans:
                if (value := spoken.text[start:end].strip()) and len(memory.values) < MAX_VALUES:
                    memory.values.setdefault(value, detector.name)
        if any(found):
            longest_first = sorted(memory.values, key=len, reverse=True)
            memory.value_pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    async def _ask(self, detector: RemotePrivateDataDetector, spoken: SpokenText) -> Sequence[tuple[int, int]]:
        now = asyncio.get_running_loop().time
        if now() < self._paused_until[detector.name]:
            metrics.private_data_unsearched.labels(detector.name, "paused").inc()
            return ()
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                return _check_places(await detector.search(spoken), spoken.text)
        except TimeoutError:
            reason = "late"
        except ProviderError:  # without its message, which may quote the text
            reason = "failed"
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            reason = "failed"
            record_extension_fault("detector of private data failed", detector, "search", error)
        self._paused_until[detector.name] = now() + PAUSE_SECONDS
        metrics.private_data_unsearched.labels(detector.name, reason).inc()
        logger.warning("private data not searched by a service", detector=detector.name, reason=reason)
        return ()


def _check_places(found: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Return the places of the text. Raises `OverflowError` for more places than the text has characters."""
    places = list(islice(found, len(text) + 1))
    if len(places) > len(text):
        raise OverflowError
    return [(start, end) for start, end in places if 0 <= start < end <= len(text)]


# Long work on the event loop in steps, between which live calls go on.

STEP_SECONDS: Final = 0.001


class Pace:
    """Pace of one piece of work: `pause` lets other tasks run once a millisecond of it is over."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let other tasks run if the current step has taken its time."""
        if time.perf_counter() - self._began >= STEP_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


KEYPAD: Final = "keypad"
"""Kind of the keys that the caller presses. It has no detector: the carrier reports them as keys."""
WINDOW_CHARACTERS: Final = 80
"""Characters of the caller's earlier words that are searched again with the next utterance."""
MIN_SECRET_DIGITS: Final = 3
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
MODEL_NOTE: Final = (
    "Private data in this conversation is replaced by placeholders in brackets, such as [card number]. "
    "A placeholder means that the caller has given that data. Never speak a placeholder."
)


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text in both forms: `kept` is saved and sent, `for_model` is what the agent's model sees."""

    kept: str
    for_model: str
    is_redacted: bool = False

    def __add__(self, other: "RedactedText") -> "RedactedText":
        return RedactedText(
            f"{self.kept} {other.kept}".strip(),
            f"{self.for_model} {other.for_model}".strip(),
            self.is_redacted or other.is_redacted,
        )


NO_WORDS: Final = RedactedText("", "")


@dataclass(frozen=True, slots=True)
class _Span:
    """A place to replace; of two kinds the one with the lower `rank` names it."""

    start: int
    end: int
    rank: int
    kind: str
    visible: bool


@dataclass(slots=True)
class Redactor:
    """Redacts one conversation. Without detectors and kinds it changes nothing.

    `kinds` are redacted everywhere, except that the model sees those in `visible_kinds`. `detectors` are in the order
    of their precedence. `undetectable_kinds` are those whose detector cannot be created: every text is redacted as a
    whole, as with a detector that raises. `language` is BCP 47.
    """

    detectors: Sequence[PrivateDataDetector] = ()
    kinds: frozenset[str] = frozenset()
    visible_kinds: frozenset[str] = frozenset()
    language: str = "en-US"
    undetectable_kinds: Sequence[str] = ()
    memory: RedactionMemory = field(default_factory=RedactionMemory)
    _remote: RemoteSearch = field(init=False)

    def __post_init__(self) -> None:
        remote = [detector for detector in self.detectors if isinstance(detector, RemotePrivateDataDetector)]
        self._remote = RemoteSearch(remote)

    @property
    def is_active(self) -> bool:
        """Return whether anything is redacted."""
        return bool(self.kinds)

    @property
    def hides_from_model(self) -> bool:
        """Return whether anything is redacted for the model."""
        return bool(self.kinds - self.visible_kinds)

    @property
    def hides_keys(self) -> bool:
        """Return whether the keys that the caller presses are redacted."""
        return KEYPAD in self.kinds

    async def search(self, text: str) -> None:
        """Ask the detectors that are services, so that what they find is redacted in this text and from now on.

        To be called before a text is redacted, wherever that can wait.
        """
        if self._remote and text:
            normalized = normalize_numbers(text, self.language)
            await self._remote.search(SpokenText(normalized.text, self.language, self.memory.question), self.memory)

    async def search_json(self, value: JsonObject) -> None:
        """Do the same for the texts of a JSON object."""
        if self._remote:
            await self.search("\n".join(_list_texts(value)))

    def redact(self, text: str) -> RedactedText:
        """Redact a text that stands for itself."""
        return self._redact("", text)

    async def search_and_redact(self, text: str) -> RedactedText:
        """Redact a text that stands for itself, once the detectors that are services have searched it."""
        await self.search(text)
        return self.redact(text)

    async def search_and_redact_json(self, value: JsonObject) -> tuple[JsonObject, JsonObject]:
        """Do the same for a JSON object; return what is kept, and what the model sees."""
        await self.search_json(value)
        return await self.redact_json(value, for_model=False), await self.redact_json(value, for_model=True)

    def redact_interim(self, text: str) -> RedactedText:
        """Redact an unfinished utterance of the caller."""
        return self._redact(self.memory.window, text)

    def redact_utterance(self, text: str) -> RedactedText:
        """Redact a finished utterance of the caller, with the numbers that earlier utterances have begun."""
        redacted = self._redact(self.memory.window, text)
        self.memory.window = f"{self.memory.window} {text}"[-WINDOW_CHARACTERS:] if self.is_active else ""
        return redacted

    def redact_keys(self, digits: str) -> RedactedText:
        """Redact pressed keys."""
        text, hidden = f"DTMF: {digits}", f"DTMF: [{KEYPAD}]"
        if not self.hides_keys:
            return RedactedText(text, text)
        return RedactedText(hidden, text if KEYPAD in self.visible_kinds else hidden, is_redacted=True)

    async def redact_json(self, value: JsonObject, *, for_model: bool) -> JsonObject:
        """Redact the texts and numbers of a JSON object, in steps. Ids (UUIDs) are left as they are: by chance, the
        digits of one begin like a card number.
        """
        if not self._redacts_anything():
            return value
        pace = Pace()
        return {name: await self._redact_value(part, for_model, pace) for name, part in value.items()}

    def hear_agent(self, text: str) -> None:
        """Remember the agent's last question: it tells what the caller's next digits mean."""
        if "?" in text or not CODE_NAMES.search(self.memory.question):
            self.memory.question = text

    def hide_keys(self) -> None:
        """Redact the keys that the caller presses from now on."""
        self.kinds |= {KEYPAD}

    def add_secret(self, digits: str) -> None:
        """Redact these digits from now on, wherever they appear; fewer than three are no secret."""
        if len(digits) >= MIN_SECRET_DIGITS:
            self.memory.secrets.append(
                re.compile(r"(?<!\d)" + r"[\s.,/-]{0,4}".join(map(re.escape, digits)) + r"(?!\d)")
            )

    def inherit(self, other: "Redactor") -> None:
        """Redact from now on also what the redactor of another agent in the conversation was told and has found."""
        self.memory = other.memory
        if other.hides_keys:
            self.hide_keys()

    def _redacts_anything(self) -> bool:
        return bool(self.detectors or self.undetectable_kinds or self.memory.secrets or self.memory.values)

    async def _redact_value(self, value: JsonValue, for_model: bool, pace: Pace) -> JsonValue:
        await pace.pause()
        if isinstance(value, dict):
            return {name: await self._redact_value(part, for_model, pace) for name, part in value.items()}
        if isinstance(value, list):
            return [await self._redact_value(part, for_model, pace) for part in value]
        if value is None or isinstance(value, bool) or (isinstance(value, str) and _UUID.fullmatch(value)):
            return value
        redacted = self.redact(str(value))
        text = redacted.for_model if for_model else redacted.kept
        return value if text == str(value) else text

    def _redact(self, before: str, text: str) -> RedactedText:
        if not text or not self._redacts_anything():
            return RedactedText(text, text)
        spans = self._find(before, text)
        return RedactedText(
            _replace(text, spans), _replace(text, [span for span in spans if not span.visible]), bool(spans)
        )

    def _find(self, before: str, text: str) -> list[_Span]:
        """Return the spans to replace in `text`, in order, none of which overlap."""
        offset = len(before) + 1 if before else 0
        whole = f"{before} {text}" if before else text
        normalized = normalize_numbers(whole, self.language)
        spoken = SpokenText(normalized.text, self.language, self.memory.question)
        hits = [
            (rank, detector.name, span)
            for rank, detector in enumerate(self.detectors)
            for span in _search(detector, spoken)
        ]
        memory = self.memory
        found_values = memory.value_pattern.finditer(normalized.text) if memory.value_pattern is not None else ()
        hits += [(len(hits), memory.values[match[0]], match.span()) for match in found_values]
        hits += [(len(hits), kind, (0, len(normalized.text))) for kind in self.undetectable_kinds]
        entered = [match.span() for secret in memory.secrets for match in secret.finditer(normalized.text)]
        hits += [(len(hits), KEYPAD, span) for span in entered]
        visible_kinds = self.visible_kinds - {KEYPAD}  # digits of an entry, which no model sees
        found = []
        for rank, kind, span in hits:
            start, end = normalized.locate(*span)
            if end > offset:
                found.append(_Span(max(start - offset, 0), end - offset, rank, kind, kind in visible_kinds))
        return _merge(found)


def _search(detector: PrivateDataDetector, spoken: SpokenText) -> Iterable[tuple[int, int]]:
    try:
        return _check_places(detector.find(spoken), spoken.text)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and an unsearched text must not be kept
        record_extension_fault("private data not searched, the text is redacted", detector, "find", error)
        return [(0, len(spoken.text))]


def _list_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(part)


def _merge(found: Sequence[_Span]) -> list[_Span]:
    """Join spans that overlap. The first detector names them, and the model sees what each of them lets it see."""
    merged = list[_Span]()
    for span in sorted(found, key=lambda span: span.start):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            first = min(last, span, key=lambda one: one.rank)
            visible = last.visible and span.visible
            merged[-1] = _Span(last.start, max(last.end, span.end), first.rank, first.kind, visible)
        else:
            merged.append(span)
    return merged


def _replace(text: str, spans: Sequence[_Span]) -> str:
    for span in reversed(spans):
        text = f"{text[: span.start]}[{span.kind.replace('_', ' ')}]{text[span.end :]}"
    return text
