"""Sentences of notice and consent by language, and the meaning of the caller's answer."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Final

from switchboard.plugin_sdk.languages import MULTIPLE_LANGUAGES, get_base_language

LONGEST_YES_WORDS: Final = 8
"""A longer utterance with a yes in it is about something else: consent must be unambiguous (GDPR, Article 4(11))."""
WORDS: Final = ("yes", "no", "neither", "doubts")
KEYS: Final = {"1": True, "2": False}


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


def understand_key(key: str) -> bool | None:
    """Return whether a key is a yes or a no; None for a key that the question does not offer."""
    return KEYS.get(key)


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
