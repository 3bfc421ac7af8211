"""Backchannels: words with which a listener shows that they follow, without asking for the turn.

`backchannels.toml` has those of each language. In other languages only sounds count ("mhm"), and for callers who switch
between languages those of all.
"""

import re
import tomllib
from collections.abc import Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

from switchboard.plugin_sdk.languages import MULTIPLE_LANGUAGES, get_base_language

Phrase: TypeAlias = tuple[str, ...]
ANY_LANGUAGE: Final = "any"
MAX_WORDS: Final = 12
"""Longer utterances are not backchannels, whatever they consist of."""
WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]*)*")
QUESTION_MARKS: Final = ("?", "？", "؟")


@cache
def load_backchannels() -> Mapping[str, Set[Phrase]]:
    """Load the backchannels of each language, by its primary tag (`en`), as tuples of words."""
    data = tomllib.loads((files(__package__) / "backchannels.toml").read_text("utf-8"))
    return {
        language: frozenset(tuple(phrase.split()) for phrase in (*rules["words"].split(), *rules["phrases"]))
        for language, rules in data.items()
    }


@cache
def _list_phrases(language: str) -> Set[Phrase]:
    """Return the backchannels that count in a language (BCP 47)."""
    backchannels = load_backchannels()
    if (base := get_base_language(language)) == MULTIPLE_LANGUAGES:
        return frozenset[Phrase]().union(*backchannels.values())
    return backchannels[ANY_LANGUAGE] | backchannels.get(base, frozenset())


def is_backchannel(text: str, language: str) -> bool:
    """Return whether an utterance in a language (BCP 47) consists of backchannels only. A question is not a
    backchannel.
    """
    words = tuple(WORD.findall(text.lower().replace("’", "'")))
    if not 0 < len(words) <= MAX_WORDS or any(mark in text for mark in QUESTION_MARKS):
        return False
    phrases = _list_phrases(language)
    reached = {0}
    for end in range(1, len(words) + 1):
        if any(words[start:end] in phrases for start in reached):
            reached.add(end)
    return len(words) in reached
