"""Endpointing policy of one call: from the caller's pauses and words to the end of the turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from switchboard.engine.conversation.call import (
    Clock,
    LiveCall,
    Pause,
    TurnJudgment,
    TurnPredictor,
)
from switchboard.engine.conversation.endpointing.text import COMPLETE, INCOMPLETE, judge_words
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.speech.vad import STOP_SECONDS
from switchboard.engine.redaction.redactor import RedactedText
from switchboard.plugin_sdk import PossibleTurn, TurnPrediction, TurnReport

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
NO_WORDS: Final = RedactedText("", "")
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


class CallerAudio(Protocol):
    """Audio of the caller: recent audio as 16-bit PCM, when the last sound ended that may be the caller's voice (None
    if noise hides it), and whether a voice starts that is too short yet for speech."""

    def get_recent_audio(self, since: float, until: float) -> bytes: ...
    def get_quiet_since(self) -> float | None: ...
    def is_voice_starting(self) -> bool: ...


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
        self, call: LiveCall, audio: CallerAudio, clock: Clock, lifetime: CallLifetime, events: TurnEvents
    ) -> None:
        self._language = call.agent.stt_language
        self._settings = call.turn_detection
        self._audio = audio
        self._predictor = call.turn_predictor
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
        by_words = judge_words(text, self._language, self._events.get_agent_utterance())
        self._judgment = NO_JUDGMENT if by_words is None else TurnJudgment(by_words, "words")
        if self._settings.mode == "text" or (by_words is not None and self._settings.mode == "auto"):
            return
        if self._reported is not None:
            self._judgment, self._judged_at = self._reported, self._clock()
        else:
            self._ask_detector()

    def _ask_detector(self) -> None:
        self._ask_at = None
        if self._predictor is not None and self._asking is None:
            self._asking = self._lifetime.start(self._ask, self._predictor)

    async def _ask(self, predictor: TurnPredictor) -> None:
        judgment = await predictor.predict(self._describe_turn())
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

    def _describe_turn(self) -> PossibleTurn:
        now = self._clock()
        paused_at = now if self._turn.paused_at is None else self._turn.paused_at
        started_at = paused_at if self._turn.started_at is None else self._turn.started_at
        return PossibleTurn(
            self._audio.get_recent_audio(started_at, paused_at + STOP_SECONDS),
            self._turn.words.for_model,
            self._turn.interim.for_model,
            self._events.get_agent_utterance(),
            self._language,
            now - paused_at,
        )
