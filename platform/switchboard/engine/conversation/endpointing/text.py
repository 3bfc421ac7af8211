"""Text detector: judges by the words whether a turn is complete. It takes microseconds.

`turn_ends.toml` has the words of each language. In another language, and for callers who switch between several, only
digits are judged.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Final

from switchboard.plugin_sdk import TurnPrediction

INCOMPLETE: Final = TurnPrediction(0.05)
COMPLETE: Final = TurnPrediction(0.95)
TAIL_CHARACTERS: Final = 160
"""Characters at the end of a turn and of a question that are looked at: a long turn costs no more than a short one."""
TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]*)*")
QUESTION_MARK: Final = re.compile(r"[?？؟]\s*$")
UNFINISHED_MARK: Final = re.compile(r"(?:[,;:–—-]|\.\.\.|…)\s*$")
MIN_LETTERS: Final = 3
"""Letters, or two letters and a digit, that are a spelling under way if nothing has announced one; "p m" is not a
spelling.
"""
NUMBER_DIGITS: Final = 10
"""Digits of a number that nothing has announced: at least a phone number."""
MIN_GROUPS: Final = 3
"""Groups of digits ("415 555 26") that are a number under way, even if nothing has announced one."""


@dataclass(frozen=True, slots=True)
class TurnEnds:
    """Words of one language, as in `turn_ends.toml`."""

    unfinished: frozenset[str]
    stranded: frozenset[str]
    questions: frozenset[str]
    fillers: frozenset[str]
    waiting: Sequence[str]
    finished: Sequence[str]
    digits: frozenset[str]
    alphabet: frozenset[str]
    spelling: frozenset[str]
    numbers: Mapping[str, int]
    partial: Sequence[str]


@cache
def load_turn_ends() -> Mapping[str, TurnEnds]:
    """Load the words of each language, by its primary tag (`en`)."""
    data = tomllib.loads((files(__package__) / "turn_ends.toml").read_text("utf-8"))
    words = ("unfinished", "stranded", "questions", "fillers", "digits", "alphabet", "spelling")
    return {
        language: TurnEnds(
            **{name: frozenset(rules[name].split()) for name in words},
            waiting=tuple(rules["waiting"]),
            finished=tuple(rules["finished"]),
            numbers=rules["numbers"],
            partial=tuple(rules["partial"]),
        )
        for language, rules in data.items()
    }


def judge_words(text: str, language: str, question: str = "") -> TurnPrediction | None:
    """Judge whether a turn is complete, or return None in doubt.

    `language` is BCP 47, and `question` what the agent said last.
    """
    words = _list_words(text)
    if not words:
        return None
    rules = load_turn_ends().get(language.partition("-")[0].lower())
    asked = [*_list_words(question), *words]
    if (prediction := _judge_number(words, asked, rules)) is not None:
        return prediction
    if UNFINISHED_MARK.search(text):
        return INCOMPLETE
    if rules is None:
        return None
    if _is_spelling(words, asked, rules):
        return INCOMPLETE
    return _judge_end(words, rules, is_question=QUESTION_MARK.search(text) is not None)


def _list_words(text: str) -> list[str]:
    return TOKEN.findall(text[-TAIL_CHARACTERS:].lower().replace("’", "'"))


def _judge_end(words: Sequence[str], rules: TurnEnds, *, is_question: bool) -> TurnPrediction | None:
    """Judge the last words."""
    last, end = words[-1], f" {' '.join(words)}"
    if any(end.endswith(f" {phrase}") for phrase in rules.finished):
        return COMPLETE
    if last in rules.fillers or any(end.endswith(f" {phrase}") for phrase in rules.waiting):
        return INCOMPLETE
    if last in rules.unfinished:
        is_stranded = last in rules.stranded and not rules.questions.isdisjoint(words[:-1])
        return None if is_stranded else INCOMPLETE
    return COMPLETE if is_question else None


def _judge_number(words: Sequence[str], asked: Sequence[str], rules: TurnEnds | None) -> TurnPrediction | None:
    """Judge a number at the end: it is complete at the length that was announced, and under way before."""
    spoken = rules.digits if rules is not None else frozenset()
    groups = digits = 0
    for word in reversed(words):
        if not (word.isdigit() or word in spoken):
            break
        groups += 1
        digits += len(word) if word.isdigit() else 1
    if not groups:
        return None
    around = f" {' '.join(asked)} "
    if rules is not None and any(f" {phrase} " in around for phrase in rules.partial):
        return None
    announced = rules.numbers.items() if rules is not None else ()
    lengths = [length for phrase, length in announced if f" {phrase} " in around]
    if lengths:
        return COMPLETE if digits >= min(lengths) else INCOMPLETE
    if groups < MIN_GROUPS:
        return None
    return COMPLETE if digits >= NUMBER_DIGITS else INCOMPLETE


def _is_spelling(words: Sequence[str], asked: Sequence[str], rules: TurnEnds) -> bool:
    """Return whether the turn ends in a spelling under way: letters, words for letters, and digits among them.

    Unless somebody has announced a spelling, it begins with two letters or with two words for letters: "K A 9", but not
    "3 p m", "tres y cuatro", or "a golf hotel".
    """
    symbols = list(takewhile(lambda word: _is_symbol(word, rules), reversed(words)))[::-1]
    if not rules.spelling.isdisjoint(asked):
        return any(_is_letter(word) or word in rules.alphabet for word in symbols)
    starts = (
        start
        for start, pair in enumerate(pairwise(symbols))
        if all(map(_is_letter, pair)) or rules.alphabet.issuperset(pair)
    )
    return len(symbols) - next(starts, len(symbols)) >= MIN_LETTERS


def _is_letter(word: str) -> bool:
    return len(word) == 1 and not word.isdigit()


def _is_symbol(word: str, rules: TurnEnds) -> bool:
    return len(word) == 1 or word.isdigit() or word in rules.alphabet or word in rules.digits
