"""Interruption policy of one call: what the caller's voice and words do while the agent speaks."""

import re
import tomllib
from collections.abc import Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

from switchboard.engine.conversation.call import Clock, LiveCall
from switchboard.engine.conversation.media.playout import Playout
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.redaction.redactor import NO_WORDS, RedactedText
from switchboard.plugin_sdk.languages import MULTIPLE_LANGUAGES, get_base_language

# Backchannels: words with which a listener shows that they follow, without asking for the turn.
#
# `interruptions.toml` has those of each language. In other languages only sounds count ("mhm"), and for callers who
# switch between languages those of all.

Phrase: TypeAlias = tuple[str, ...]
ANY_LANGUAGE: Final = "any"
MAX_WORDS: Final = 12
"""Longer utterances are not backchannels, whatever they consist of."""
WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]*)*")
QUESTION_MARKS: Final = ("?", "？", "؟")


@cache
def load_backchannels() -> Mapping[str, Set[Phrase]]:
    """Load the backchannels of each language, by its primary tag (`en`), as tuples of words."""
    data = tomllib.loads((files(__package__) / "interruptions.toml").read_text("utf-8"))
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


SOUND_SECONDS: Final = 0.5
"""Speech over the agent that goes on for longer holds the agent's audio. Most backchannels are shorter. The carrier
still has up to 0.4 seconds of audio then, so that even a sound of 0.8 seconds leaves no gap."""
WORDS_SECONDS: Final = 0.8
"""Time for which held audio waits for words."""
ANSWER_SECONDS: Final = 1.0
"""A "yes" in the last second of the agent's question answers it."""


class Interruptions:
    """Judges what the caller says while the agent speaks or thinks.

    Words interrupt the agent if there are `interruption_min_words` of them and they are not a backchannel. Speech
    without words holds the agent's audio, which goes on where it stopped when the words do not interrupt, or when none
    come. `held_back` are words that are answered once the agent has finished.
    """

    def __init__(self, call: LiveCall, playout: Playout, transcript: CallTranscript, clock: Clock) -> None:
        self._call = call
        self._playout = playout
        self._transcript = transcript
        self._clock = clock
        self._hold_at: float | None = None
        self._resume_at: float | None = None
        self._backchannels: list[tuple[RedactedText, float, float]] = []
        self.held_back = NO_WORDS

    def handle_speech_started(self, started_at: float) -> None:
        """Handle a sound that may become an interruption."""
        self._hold_at = started_at + SOUND_SECONDS

    def handle_speech_stopped(self) -> None:
        """Handle the end of a sound: one that has not held the agent's audio yet was short."""
        self._hold_at = None

    def handle_words(self, text: str) -> bool:
        """Return whether the caller's words so far, none if nothing was said, interrupt the agent."""
        self._hold_at = None
        self._resume()
        settings = self._call.agent.settings
        if not settings.allow_interruptions or is_backchannel(text, settings.stt_language):
            return False
        return len(text.split()) >= max(1, settings.interruption_min_words)

    def add_words(self, words: RedactedText, text: str, started_at: float, ended_at: float) -> None:
        """Keep finished words that did not interrupt the agent; `text` is not redacted."""
        settings = self._call.agent.settings
        if settings.allow_interruptions or is_backchannel(text, settings.stt_language):
            self._backchannels.append((words, started_at, ended_at))
        else:
            self.held_back += words

    def end_reply(self, question: str = "") -> None:
        """Add the backchannels of a reply that is over to the transcript.

        Those in the last second of `question`, a reply that was spoken to its end, answer it and are held back.
        """
        answered_from = self._clock() - ANSWER_SECONDS if question.rstrip().endswith(QUESTION_MARKS) else float("inf")
        backchannels, self._backchannels = self._backchannels, []
        for words, started_at, ended_at in backchannels:
            if ended_at >= answered_from:
                self.held_back += words
            else:
                self._transcript.add_backchannel(words.kept, started_at, ended_at)

    def take_held_back(self) -> RedactedText:
        """Return the words that wait for an answer, which do not wait any more."""
        words, self.held_back = self.held_back, NO_WORDS
        return words

    def tick(self, now: float, *, may_hold: bool) -> None:
        """Hold the agent's audio, if it may be, when a sound has lasted; let it go on when no words came."""
        if self._resume_at is not None and (now >= self._resume_at or not self._playout.is_playing(now)):
            self._resume()
        elif self._hold_at is not None and now >= self._hold_at:
            self._hold_at = None
            if may_hold and self._playout.is_playing(now):
                self._resume_at = now + WORDS_SECONDS
                self._playout.hold()

    def _resume(self) -> None:
        if self._resume_at is not None:
            self._resume_at = None
            self._playout.resume()
