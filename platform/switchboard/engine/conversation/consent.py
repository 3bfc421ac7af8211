"""Opening of a call with a notice and, if it is due, the question of consent to the recording."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from switchboard.engine.conversation.call import SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.disclosure.disclosure import (
    ANSWER_KEYS,
    AnsweredBy,
    ConsentRecord,
    Disclosure,
    understand_words,
)
from switchboard.engine.redaction.redactor import RedactedText

ATTEMPTS: Final = 2
ANSWER_SECONDS: Final = 8.0
"""Time limit for an answer, from the end of the question."""

STAYED = "The other party was told that the call is recorded, and stayed."
CONSENTED = "The other party consented to the recording."
REFUSED = "The other party did not consent to the recording. The call is not recorded."


ConsentHandler: TypeAlias = Callable[[bool], None]
"""Called with True when the other party has consented to the recording, and with False when it has not."""


@dataclass(frozen=True, slots=True)
class _Answer:
    given: bool | None
    by: AnsweredBy
    heard: str


class ConsentDialog:
    """Speaks the notice and asks the question of one call, before the greeting.

    Nothing interrupts it. Answers count from the beginning of the question on, and take effect at its end: a "yes?"
    with which somebody picks up the phone is not consent.
    """

    def __init__(
        self, context: SessionContext, disclosure: Disclosure, speech_output: SpeechOutput, transcript: CallTranscript
    ) -> None:
        self._context = context
        self.disclosure = disclosure
        self._speech_output = speech_output
        self._transcript = transcript
        self._spoken = asyncio.Event()
        self._answers: asyncio.Queue[_Answer] = asyncio.Queue()
        self._question: SpokenReply | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, lifetime: CallLifetime, handle_consent: ConsentHandler) -> None:
        """Speak and ask in a task of the call; at the end call `handle_consent`."""
        self._task = lifetime.start(self._run, handle_consent)

    def give_up(self) -> None:
        """Leave the question open, because the call ends."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, handle_consent: ConsentHandler) -> None:
        handle_consent(await self._find_consent())

    async def _find_consent(self) -> bool:
        """Speak and ask; return whether the call may be recorded. Record the consent in the call's log."""
        disclosure, texts = self.disclosure, self.disclosure.texts
        question = texts.question if disclosure.consent == "ask" else ""
        record = ConsentRecord(disclosure, " ".join(filter(None, (disclosure.notice, question))), self._measure())
        self._context.call.log.record_consent(record)
        if disclosure.notice:
            await self._say(disclosure.notice)
        if disclosure.consent == "none":
            return True
        answer = await self._ask() if question else _Answer(given=True, by="stayed", heard="")
        given, now = answer is not None and answer.given is True, self._measure()
        record = replace(record, answer=given, answered_ms=now, recording_offset_ms=now if given else None)
        if answer is not None:
            record = replace(record, by=answer.by, heard=answer.heard or None)
        self._context.call.log.record_consent(record)
        self._transcript.add("system", REFUSED if not given else CONSENTED if question else STAYED)
        return given

    async def _ask(self) -> _Answer | None:
        """Ask until there is an answer; None if nothing was understood."""
        texts = self.disclosure.texts
        for attempt in range(ATTEMPTS):
            speaking = self._say(f"{texts.unclear} {texts.question}" if attempt else texts.question)
            self._question = self._question or self._speech_output.reply
            await speaking
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await self._answers.get()
            except TimeoutError:
                continue
            if answer.given is not None:
                return answer
        return None

    def _say(self, text: str) -> Awaitable[object]:
        """Begin to speak; return what waits for the end."""
        self._spoken.clear()
        self._speech_output.say_only(text)
        return self._spoken.wait()

    # --- events of the call ---

    def handle_reply_ended(self) -> None:
        """Go on once the notice or the question has been spoken."""
        self._spoken.set()

    def handle_words(self, words: RedactedText, since: float) -> bool:
        """Handle an utterance that began at `since`; return False if it was said before the question."""
        asked_at = self._question.started_at if self._question is not None else None
        if asked_at is None or since < asked_at:
            return False
        self._transcript.add("user", words.kept, since)
        self._handle_answer(_Answer(understand_words(words.for_model, self.disclosure.phrases), "speech", words.kept))
        return True

    def handle_key(self, key: str) -> None:
        """Handle a key. Keys before the question mean nothing."""
        if self._question is not None:
            self._transcript.add("user", f"DTMF: {key}")
            self._handle_answer(_Answer(ANSWER_KEYS.get(key), "keypad", key))

    def _handle_answer(self, answer: _Answer) -> None:
        """Keep the latest answer. Ignore anything but an answer while the question is spoken."""
        if answer.given is None and not self._spoken.is_set():
            return
        while not self._answers.empty():
            self._answers.get_nowait()
        self._answers.put_nowait(answer)

    def _measure(self) -> int:
        return round((self._context.clock() - self._context.socket.opened_at) * 1000)
