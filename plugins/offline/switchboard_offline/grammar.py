"""Grammar for PocketSphinx from an agent's expected phrases, and the phrases from recognized words."""

import re
from collections.abc import Callable, Iterable, Sequence

DIGITS = dict(
    zip("0123456789", ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), strict=True)
)
MAX_PHRASES = 400
MAX_WORDS = 20


def split_spoken_words(text: str) -> tuple[str, ...]:
    """Split a text into dictionary words: lower case, without punctuation, digits spelled out."""
    spelled = re.sub(r"\d", lambda digit: f" {DIGITS[digit[0]]} ", text.lower().replace("’", "'"))
    return tuple(word.strip("'") for word in re.findall(r"[a-z']+", spelled) if word.strip("'"))


class PhraseGrammar:
    """A grammar of one phrase, or two in a row."""

    def __init__(self, hints: Iterable[str], pronounceable: Callable[[str], bool]) -> None:
        """Leave out phrases with a word that the dictionary lacks."""
        self._phrases: dict[tuple[str, ...], str] = {}
        for hint in hints:
            words = split_spoken_words(hint)
            if 0 < len(words) <= MAX_WORDS and all(map(pronounceable, words)) and len(self._phrases) < MAX_PHRASES:
                self._phrases.setdefault(words, hint.strip())

    def __bool__(self) -> bool:
        return bool(self._phrases)

    def to_jsgf(self) -> str:
        """Return the grammar in JSpeech Grammar Format, which PocketSphinx reads."""
        alternatives = " | ".join(" ".join(words) for words in self._phrases)
        return f"#JSGF V1.0;\ngrammar phrases;\n<phrase> = {alternatives};\npublic <heard> = <phrase> [<phrase>];\n"

    def match_phrases(self, heard: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the recognized phrases, in original form and as words.

        The incomplete start of another phrase (noise after the end) is ignored.
        """
        found, rest = [], tuple(heard)
        while rest:
            longest = max((words for words in self._phrases if rest[: len(words)] == words), key=len, default=None)
            if longest is None:
                break
            found.append((self._phrases[longest], longest))
            rest = rest[len(longest) :]
        return found
