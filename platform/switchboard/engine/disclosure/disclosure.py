"""Notice and consent of one call: the parts that are due, and the course that they took."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from switchboard.engine.disclosure.phrases import DisclosureTexts, Phrases

ConsentMode: TypeAlias = Literal["none", "notice", "ask"]
AnsweredBy: TypeAlias = Literal["speech", "keypad", "stayed"]


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
