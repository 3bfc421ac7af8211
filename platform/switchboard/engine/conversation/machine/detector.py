"""Judgment of an answer by its sound and its words: a person, a machine, or an assistant that screens the call.

A person says a word or two and waits; a greeting goes on. So a long utterance without a pause is a machine's, and a
short one, followed by a pause, a person's, as in Asterisk's AMD. Words that only greetings have decide at once, and so
does a beep, also a while after a short greeting was taken for a person's. `make bench NAME=voicemail` measures it.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

Answer: TypeAlias = Literal["human", "machine", "screening"]
LONGEST_HELLO: Final = 3.6
"""Seconds of speech, without a pause, that a person does not say before waiting for an answer."""
PAUSE: Final = 1.1
"""Seconds of silence after which a person waits. Greetings have pauses of half a second between their sentences."""
BEEP_SECONDS: Final = 15.0
"""Seconds after the answer for which a beep is a machine's."""
PATIENCE: Final = 12.0
"""Seconds after which an answer that says nothing is a person's."""
WORD: Final = re.compile(r"\w+")


class AnswerDetector:
    """Judges the answer of one call. Times are in seconds of the engine's clock."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._speech_since: float | None = None
        self._silent_since: float | None = None

    def hear_speech(self, now: float, speaking: bool, last_voice_at: float) -> Answer | None:
        """Judge the answer by the other party's voice and silence; return None as long as it may be either."""
        if self._speech_since is None:
            self._speech_since = now if speaking else None
            return "human" if not speaking and now - self._started_at > PATIENCE else None
        if speaking:
            return "machine" if now - self._speech_since > LONGEST_HELLO else None
        return "human" if now - last_voice_at > PAUSE else None


def judge_answer_words(text: str) -> Answer | None:
    """Judge words as they are transcribed; return None for words that a person and a machine may say."""
    spoken = " ".join(WORD.findall(text.lower().replace("\u2019", "'").replace("'", "")))
    phrases = _load_phrases()
    return next((answer for answer, known in phrases.items() if known.search(spoken)), None)


@cache
def _load_phrases() -> dict[Answer, re.Pattern[str]]:
    """Load the phrases of all languages, screening first: its words are more specific than those of greetings."""
    found: dict[str, list[str]] = tomllib.loads((files(__package__) / "phrases.toml").read_text())
    return {
        answer: re.compile(rf"\b(?:{'|'.join(re.escape(phrase) for phrase in found[answer])})\b")
        for answer in ("screening", "machine")
    }
