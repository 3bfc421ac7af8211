"""Endpointing policy of one call: from the caller's pauses and words to the end of the turn."""

import asyncio
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any, Final, Protocol

from switchboard.engine.conversation.agent_settings import TurnDetection
from switchboard.engine.conversation.call import (
    Clock,
    LiveCall,
    Pause,
    TurnJudgment,
    TurnPredictor,
)
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.speech.vad import STOP_SECONDS
from switchboard.engine.redaction.redactor import NO_WORDS, RedactedText
from switchboard.plugin_sdk import PossibleTurn, TurnPrediction, TurnReport
from switchboard.plugin_sdk.languages import get_base_language

# Text detector: judges by the words whether a turn is complete. It takes microseconds.
#
# `turn_ends.toml` has the words of each language. In another language, and for callers who switch between several, only
# digits are judged.

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
    return {
        language: TurnEnds(**{name: _split(rule) for name, rule in rules.items()}) for language, rules in data.items()
    }


def _split(rule: Any) -> Any:
    """Return the words of a text; phrases and numbers are lists and tables already."""
    return frozenset(rule.split()) if isinstance(rule, str) else rule


def judge_words(text: str, language: str, question: str = "") -> TurnPrediction | None:
    """Judge whether a turn is complete, or return None in doubt.

    `language` is BCP 47, and `question` what the agent said last.
    """
    words = _list_words(text)
    if not words:
        return None
    rules = load_turn_ends().get(get_base_language(language))
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


CERTAIN_FROM: Final = 0.95
"""Probability from which the end of a turn is certain enough for the shorter confirmation."""
CONFIRMATION_SECONDS: Final = 0.04
NOISY_CONFIRMATION_SECONDS: Final = 0.12
DOUBT_SECONDS: Final = 0.3
"""Silence beyond the shortest that confirms an end which no words have shown: if it is certain, if it is certain but
noise hides when the voice ended, and if it is not certain. Most callers who go on do so within it. By `bench/turns`;
decision 47 has the trade-off."""
MAX_EARLIER_SECONDS: Final = 0.15
MAX_LATER_SECONDS: Final = 0.25
"""Time by which sounds may move the beginning of a pause that voice activity detection has found. Later ones are a
voice that starts, which it notices by then, or no voice."""
WORDLESS_SECONDS: Final = 5.0
"""Speech that has brought no words for this long is noise: the words before it are the turn."""
NO_JUDGMENT: Final = TurnJudgment(COMPLETE, None)
"""Words that leave doubt count as complete if no detector answers."""


@dataclass(frozen=True, slots=True)
class CallerTurn:
    """A turn. Times are in seconds of the engine's clock; `ended_at` is the moment of the decision."""

    words: RedactedText
    started_at: float
    ended_at: float
    pauses: Sequence[Pause] = ()


@dataclass(slots=True)
class _UnfinishedTurn:
    """A turn so far. `text` are its words without redaction; `is_transcribed` once those before the pause are known.

    `started_at` is None until the caller speaks, or words of the speech before are transcribed late.
    """

    words: RedactedText = NO_WORDS
    interim: RedactedText = NO_WORDS
    text: str = ""
    started_at: float | None = None
    paused_at: float | None = None
    is_transcribed: bool = False
    pauses: list[Pause] = field(default_factory=list)


class TurnEvents(Protocol):
    """Questions of the policy to the conversation, and its decisions.

    `handle_possible_end` is called when a turn may be over and nothing speaks against it. Then `handle_turn_over`
    follows, or more words of the caller, or `handle_turn_resumed` if the transcriber notices that the caller goes on.
    """

    def get_agent_utterance(self) -> str: ...
    def handle_possible_end(self, words: RedactedText) -> None: ...
    def handle_turn_resumed(self) -> None: ...
    def handle_turn_over(self, turn: CallerTurn) -> None: ...


class Endpointing:
    """Collects the caller's words and decides when the turn is over.

    The words of a pause are judged once they are transcribed. A turn with complete words is over after
    `min_silence_seconds`, another one that counts as complete a confirmation later, and neither while a voice starts.
    Both count from the last sound that may be the caller's voice, where noise does not hide it. An incomplete turn is
    over when the silence has lasted for `max_silence_seconds`.

    Mode `silence` judges nothing. `text` judges by the words. `audio` asks the organization's turn detector, and `auto`
    asks it where the words leave doubt; both go by the words if there is no detector, or if it does not answer in time.
    A transcriber that reports its own judgment of the turn takes the detector's place.
    """

    def __init__(
        self, call: LiveCall, audio: SpeechInput, clock: Clock, lifetime: CallLifetime, events: TurnEvents
    ) -> None:
        self._call = call
        self._audio = audio
        self._clock = clock
        self._lifetime = lifetime
        self._events = events
        self._turn = _UnfinishedTurn()
        self._speaking_since: float | None = None
        self._judgment = NO_JUDGMENT
        self._reported: TurnJudgment | None = None
        self._judged_at = 0.0
        self._ask_at: float | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def _settings(self) -> TurnDetection:
        return self._call.turn_detection

    @property
    def words(self) -> RedactedText:
        """Words of the turn so far, as far as their transcripts are final."""
        return self._turn.words

    @property
    def turn_started_at(self) -> float | None:
        """The beginning of the turn; None before it."""
        return self._turn.started_at

    def handle_speech_started(self, started_at: float) -> None:
        """Handle the end of a pause. In mode `silence` one that has lasted for `min_silence_seconds` ends the turn."""
        now = self._speaking_since = self._clock()
        if self._turn.paused_at is not None and now - self._turn.paused_at < self._settings.min_silence_seconds:
            self._turn.paused_at = None
        if not self._turn.words.kept:
            self._turn.started_at = started_at
        elif self._turn.is_transcribed:
            self._add_pause(started_at, ended_turn=False)
        self._reported = None
        self._stop_asking()

    def handle_speech_stopped(self, last_voice_at: float) -> None:
        """Handle the beginning of a pause, whose last words are still to be transcribed."""
        self._speaking_since = None
        self._turn.paused_at = last_voice_at
        self._turn.is_transcribed = False

    def handle_interim(self, words: RedactedText, text: str) -> None:
        """Handle words that are not final yet. Speech that brings words is not noise, and a pause is judged again."""
        if not self._turn.words.kept or not text:
            return
        self._turn.interim = words
        if self._speaking_since is not None:
            self._speaking_since = self._clock()
        elif self._turn.is_transcribed:
            self._judge(f"{self._turn.text} {text}")

    def handle_turn_report(self, report: TurnReport) -> None:
        """Handle the transcriber's own judgment of the turn, which the modes `silence` and `text` do not use."""
        if self._settings.mode in ("silence", "text"):
            return
        before = self._reported.state if self._reported is not None else None
        self._reported = TurnJudgment(TurnPrediction(report.probability), report.detector, report.state)
        if before == "eager_end" and report.state == "ongoing":
            self._events.handle_turn_resumed()
        if report.state != before and self._turn.words.kept and self._turn.is_transcribed:
            self._judge_pause(self._turn.text)

    def add_words(self, words: RedactedText, text: str, spoken_at: float) -> None:
        """Add the final transcript of the words before a pause, empty if there were none; `text` is not redacted.

        `spoken_at` is the beginning of the latest speech: words that are transcribed after their turn was taken begin
        the next one, which has no beginning of its own.
        """
        if self._turn.started_at is None:
            self._turn.started_at = spoken_at
        self._turn.words += words
        self._turn.text = f"{self._turn.text} {text}".strip()
        self._turn.interim = NO_WORDS
        self._turn.is_transcribed = True
        self._judge_pause(self._turn.text)

    def take_turn(self, ended_at: float) -> CallerTurn:
        """Return the turn so far, which is over."""
        turn, self._turn = self._turn, _UnfinishedTurn(started_at=self._speaking_since)
        self._judged_at = 0.0
        self._reported = None
        self._stop_asking()
        return CallerTurn(turn.words, ended_at if turn.started_at is None else turn.started_at, ended_at, turn.pauses)

    def tick(self, now: float) -> None:
        """End the turn if it is over, and ask the detector again when it wanted to be asked."""
        if not self._turn.words.kept or not self._turn.is_transcribed:
            return
        if self._is_over(now):
            paused_at = now if self._turn.paused_at is None else self._turn.paused_at
            ended_at = min(now, max(self._find_voice_end(paused_at) + self._get_shortest_silence(), self._judged_at))
            self._add_pause(ended_at, ended_turn=True)
            self._events.handle_turn_over(self.take_turn(ended_at))
        elif self._ask_at is not None and now >= self._ask_at:
            self._ask_detector()

    def _is_over(self, now: float) -> bool:
        settings, paused_at = self._settings, self._turn.paused_at
        if self._speaking_since is not None and (settings.mode != "silence" or paused_at is None):
            self._judged_at = now
            return now - self._speaking_since >= WORDLESS_SECONDS
        if paused_at is None:
            paused_at = now
        if settings.mode == "silence":
            return now - paused_at >= settings.min_silence_seconds
        voice_end = self._find_voice_end(paused_at)
        is_longest = now - min(voice_end, paused_at) >= settings.max_silence_seconds
        is_quiet = now - voice_end >= self._get_shortest_silence()
        is_complete = self._asking is None and self._judgment.is_complete and is_quiet
        is_held = is_complete and self._audio.is_voice_starting()
        if is_longest or is_held:
            self._judged_at = now
        return is_longest or (is_complete and not is_held)

    def _get_shortest_silence(self) -> float:
        """Return the seconds after which the turn may be over, by what has judged it."""
        settings, judgment = self._settings, self._judgment
        if settings.mode == "silence" or judgment.detector == "words" or judgment.state is not None:
            return settings.min_silence_seconds
        if judgment.prediction.probability < CERTAIN_FROM:
            confirmation = DOUBT_SECONDS
        else:
            is_noisy = self._audio.get_quiet_since() is None
            confirmation = NOISY_CONFIRMATION_SECONDS if is_noisy else CONFIRMATION_SECONDS
        return min(settings.min_silence_seconds + confirmation, settings.max_silence_seconds)

    def _find_voice_end(self, paused_at: float) -> float:
        """Return when the caller's voice ended: what voice activity detection has found, corrected by its level."""
        quiet_since = self._audio.get_quiet_since()
        if quiet_since is None or self._settings.mode == "silence":
            return paused_at
        return min(max(quiet_since, paused_at - MAX_EARLIER_SECONDS), paused_at + MAX_LATER_SECONDS)

    def _judge_pause(self, text: str) -> None:
        """Judge a pause whose words are known: end the turn, or announce that it may be over."""
        self._judge(text)
        self.tick(self._clock())
        is_doubtful = self._judgment.prediction is not INCOMPLETE and self._judgment.state != "ongoing"
        if self._turn.words.kept and self._speaking_since is None and is_doubtful:
            self._events.handle_possible_end(self._turn.words)

    def _judge(self, text: str) -> None:
        """Judge the words, and go by the transcriber's report, or ask the detector, if they leave doubt."""
        self._stop_asking()
        if self._settings.mode == "silence" or self._speaking_since is not None:
            return
        by_words = judge_words(text, self._call.agent.settings.stt_language, self._events.get_agent_utterance())
        self._judgment = NO_JUDGMENT if by_words is None else TurnJudgment(by_words, "words")
        if self._settings.mode == "text" or (by_words is not None and self._settings.mode == "auto"):
            return
        if self._reported is not None:
            self._judgment, self._judged_at = self._reported, self._clock()
        else:
            self._ask_detector()

    def _ask_detector(self) -> None:
        self._ask_at = None
        predictor = self._call.agent.turn_predictor
        if predictor is not None and self._asking is None:
            self._asking = self._lifetime.start(self._ask, predictor)

    async def _ask(self, predictor: TurnPredictor) -> None:
        now = self._clock()
        paused_at = now if self._turn.paused_at is None else self._turn.paused_at
        started_at = paused_at if self._turn.started_at is None else self._turn.started_at
        turn = PossibleTurn(
            self._audio.get_recent_audio(started_at, paused_at + STOP_SECONDS),
            self._turn.words.for_model,
            self._turn.interim.for_model,
            self._events.get_agent_utterance(),
            self._call.agent.settings.stt_language,
            now - paused_at,
        )
        judgment = await predictor.predict(turn)
        self._asking = None
        self._judged_at = self._clock()
        if judgment is not None:
            self._judgment = judgment
            if (seconds := judgment.prediction.ask_again_seconds) is not None:
                self._ask_at = self._judged_at + seconds
        self.tick(self._judged_at)

    def _stop_asking(self) -> None:
        self._ask_at = None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _add_pause(self, until: float, *, ended_turn: bool) -> None:
        """Add the pause that has ended, with its judgment, to those of the turn."""
        turn, judgment = self._turn, self._judgment
        if turn.paused_at is None or turn.started_at is None:
            return
        after_ms, waited_ms = (
            max(0, round((end - begin) * 1000))
            for begin, end in ((turn.started_at, turn.paused_at), (turn.paused_at, until))
        )
        if turn.pauses and turn.pauses[-1].after_ms == after_ms:
            turn.pauses.pop()  # the sound that ended it has brought no words
        if self._settings.mode == "silence":
            pause = Pause(after_ms, waited_ms, ended_turn, "silence")
        else:
            probability = judgment.prediction.probability if judgment.detector is not None else None
            pause = Pause(after_ms, waited_ms, ended_turn, judgment.detector, probability)
        turn.pauses.append(pause)
