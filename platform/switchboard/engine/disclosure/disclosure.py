"""Notice and consent of one call: the parts that are due, their sentences, the caller's answer, and the result."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from switchboard.plugin_sdk.languages import MULTIPLE_LANGUAGES, get_base_language

LONGEST_YES_WORDS: Final = 8
"""A longer utterance with a yes in it is about something else: consent must be unambiguous (GDPR, Article 4(11))."""
WORDS: Final = ("yes", "no", "neither", "doubts")
ANSWER_KEYS: Final = {"1": True, "2": False}
"""Meaning of the keys that the question offers: a yes or a no."""
ConsentMode: TypeAlias = Literal["none", "notice", "ask"]
AnsweredBy: TypeAlias = Literal["speech", "keypad", "stayed"]


@dataclass(frozen=True, slots=True)
class DisclosureTexts:
    """The sentences of one call."""

    ai_notice: str
    recording_notice: str
    question: str
    unclear: str
    refused: str
    goodbye: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """The standard sentences of a language, and the words that answer the question."""

    texts: DisclosureTexts
    yes: tuple[str, ...]
    no: tuple[str, ...]
    neither: tuple[str, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Notice and question that open a call.

    `consent` is `none` (the call is recorded), `notice` (staying on the line after the notice is consent), or `ask`.
    `rules` name the settings that decided, and `place` is the country or region of the other party's number, None if it
    is unknown.
    """

    announces_ai: bool
    consent: ConsentMode
    ends_without_consent: bool
    texts: DisclosureTexts
    phrases: Phrases
    rules: tuple[str, ...] = ()
    place: str | None = None

    @property
    def notice(self) -> str:
        """The sentences that are spoken before the question; empty if there are none."""
        notices = ((self.texts.ai_notice, self.announces_ai), (self.texts.recording_notice, self.consent == "notice"))
        return " ".join(text for text, is_due in notices if is_due)


@dataclass(frozen=True, slots=True)
class ConsentRecord:
    """Notice and consent of a call so far. Milliseconds count from the start of the call's audio.

    `answer` is None until there is one: it stays None if only a notice was due, and if the other party hung up before.
    `by` and `heard` are None for a question without an answer, which counts as a no. `recording_offset_ms` is the
    moment from which the recording has the other party, None without a recording.
    """

    disclosure: Disclosure
    spoken: str
    asked_ms: int
    answer: bool | None = None
    by: AnsweredBy | None = None
    heard: str | None = None
    answered_ms: int | None = None
    recording_offset_ms: int | None = None


def has_phrases(language: str) -> bool:
    """Return whether there are sentences in a language (BCP 47)."""
    return get_base_language(language) in _load_phrases()


def get_phrases(language: str) -> Phrases:
    """Return the phrases of a language (BCP 47), or those of English, with all languages' words for `mul`."""
    known = _load_phrases()
    if (base := get_base_language(language)) != MULTIPLE_LANGUAGES:
        return known.get(base, known["en"])
    words = (tuple({phrase for one in known.values() for phrase in getattr(one, name)}) for name in WORDS)
    return Phrases(known["en"].texts, *words)


def understand_words(words: str, phrases: Phrases) -> bool | None:
    """Return whether an utterance is a yes or a no; None if it is neither, or both."""
    said = _normalize(words)
    is_short = len(said.split()) <= LONGEST_YES_WORDS
    said = _remove(said, phrases.neither)
    is_no = _remove(said, phrases.no) != said
    is_yes = _remove(said, phrases.yes) != said
    is_doubtful = not is_short or _remove(said, phrases.doubts) != said
    if is_yes == is_no or (is_yes and is_doubtful):
        return None
    return is_yes


@cache
def _load_phrases() -> Mapping[str, Phrases]:
    content = tomllib.loads(files(__package__).joinpath("phrases.toml").read_text("utf-8"))
    names = [field.name for field in fields(DisclosureTexts)]
    return {
        language: Phrases(
            DisclosureTexts(*(table[name] for name in names)),
            *(tuple(_normalize(phrase) for phrase in table[name]) for name in WORDS),
        )
        for language, table in content.items()
    }


def _normalize(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'")))


def _remove(text: str, phrases: Iterable[str]) -> str:
    """Remove whole words, the longest phrases first."""
    ordered = sorted(phrases, key=len, reverse=True)
    return re.sub(rf"(?<!\S)(?:{'|'.join(map(re.escape, ordered))})(?!\S)", "", text)
