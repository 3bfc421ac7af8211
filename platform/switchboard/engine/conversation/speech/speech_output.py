"""The agent's speech: text-to-speech sentence by sentence, playout, and an account of what the caller really heard."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import takewhile
from uuid import UUID, uuid4

import structlog
from opentelemetry.context import attach

from switchboard.engine.conversation.call import Clock, LiveCall, MediaSocket
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.conversation.media.playout import BYTES_PER_SECOND, Playout
from switchboard.engine.conversation.speech.text_normalization import (
    Piece,
    count_letters,
    find_heard_text,
    normalize_text,
)
from switchboard.engine.conversation.transcript import TurnClock
from switchboard.plugin_sdk import PHONE_MULAW, AudioFormat, Encoding, ProviderError, SpeechChunk, SpeechRequest, Word

logger = structlog.get_logger()


LETTERS_PER_SECOND = 14
"""Estimated pace of a sentence whose synthesis goes on, without word timing: English is spoken at 12 to 16."""


@dataclass(slots=True)
class Sentence:
    """A sentence, how it is read aloud, and where its audio lies in the playout.

    `is_whole` is set once `end` is the end of its audio. `heard` is the part of the text that the caller has heard, set
    at the end of the reply.
    """

    text: str
    pieces: Sequence[Piece] = ()
    start: int | None = None
    end: int = 0
    is_whole: bool = False
    words: list[Word] = field(default_factory=list)
    heard: str = ""

    @property
    def spoken(self) -> str:
        """The text as it is read aloud."""
        return "".join(piece.spoken for piece in self.pieces)

    def heard_text(self, until: int) -> str:
        """Return the text before a position of the playout, by the words' times or, if unknown, in proportion."""
        if self.start is None or until <= self.start:
            return ""
        if self.is_whole and until >= self.end:
            return self.text
        if self.words:
            milliseconds = (until - self.start) * 1000 // BYTES_PER_SECOND
            letters = sum(count_letters(word.text) for word in self.words if word.end_ms <= milliseconds)
            return find_heard_text(self.pieces, letters)
        words, length = self.text.split(), self.end - self.start
        if not self.is_whole:
            length = max(length, count_letters(self.text) * BYTES_PER_SECOND // LETTERS_PER_SECOND)
        return " ".join(words[: int(len(words) * (until - self.start) / length)])


@dataclass(slots=True)
class SpokenReply:
    """The agent's reply in one turn. `complete` is set once nothing more will be added.

    `recorded` has the sentences that the history holds already, because a tool was called after them: the place of each
    message, and the number of sentences up to its end.
    """

    turn: TurnClock | None = None
    sentences: list[Sentence] = field(default_factory=list)
    pending: int = 0
    complete: bool = False
    started_at: float | None = None
    recorded: list[tuple[int, int]] = field(default_factory=list)
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def text(self) -> str:
        """Everything that was to be said."""
        return " ".join(sentence.text for sentence in self.sentences)


def join_heard(sentences: Iterable[Sentence]) -> str:
    """Return the text that the caller has heard of some sentences of a reply that is over."""
    return " ".join(filter(None, (sentence.heard for sentence in sentences)))


class SpeechOutput:
    """Speaks one reply at a time. `on_reply_ended(reply, interrupted)` is called when a reply is over."""

    def __init__(
        self,
        call: LiveCall,
        socket: MediaSocket,
        encoding: Encoding,
        clock: Clock,
        on_reply_ended: Callable[[SpokenReply, bool], None],
    ) -> None:
        self._call = call
        self._wire = AudioFormat(encoding, 8000)
        self._clock = clock
        self._on_reply_ended = on_reply_ended
        self._waiting: asyncio.Queue[tuple[SpokenReply, Sentence]] = asyncio.Queue()
        self._synthesis: asyncio.Task[None] | None = None
        self.playout = Playout(socket, call.codec, clock, self._record_first_frame)
        self.reply: SpokenReply | None = None
        self.characters = Counter[UUID]()

    def start_reply(self, turn: TurnClock | None = None) -> SpokenReply:
        """Start a reply; the previous one must be over."""
        self.reply = SpokenReply(turn)
        return self.reply

    def say(self, reply: SpokenReply, text: str) -> None:
        """Add a sentence to a reply, unless the reply was interrupted."""
        if reply is not self.reply or not text.strip():
            return
        settings, text = self._call.agent.settings, text.strip()
        sentence = Sentence(text, normalize_text(text, settings.stt_language, settings.pronunciations))
        reply.sentences.append(sentence)
        reply.pending += 1
        self._waiting.put_nowait((reply, sentence))

    def say_only(self, text: str) -> None:
        """Speak a reply of one sentence."""
        reply = self.start_reply()
        self.say(reply, text)
        reply.complete = True

    def is_speaking(self) -> bool:
        """Return whether the caller hears the agent or is about to."""
        return self.playout.is_playing(self._clock()) or (self.reply is not None and self.reply.pending > 0)

    def get_heard_text(self) -> str:
        """Return what the caller has heard so far of the current reply."""
        heard_bytes = self.playout.count_heard(self._clock())
        sentences = self.reply.sentences if self.reply is not None else ()
        return " ".join(filter(None, (sentence.heard_text(heard_bytes) for sentence in sentences)))

    def interrupt(self) -> None:
        """Stop speaking at once and end the reply with what was heard of it."""
        reply, self.reply = self.reply, None
        heard_bytes = self.playout.clear()
        while not self._waiting.empty():
            self._waiting.get_nowait()
        if self._synthesis is not None:
            self._synthesis.cancel()
        if reply is not None:
            for sentence in reply.sentences:
                sentence.heard = sentence.heard_text(heard_bytes)
            self._on_reply_ended(reply, True)

    def tick(self) -> None:
        """End a reply that has been played."""
        reply = self.reply
        if reply is None or not reply.complete or reply.pending or self.playout.is_playing(self._clock()):
            return
        self.reply = None
        for sentence in reply.sentences:
            sentence.heard = sentence.text
        self._on_reply_ended(reply, False)

    async def run(self) -> None:
        """Synthesize sentences until canceled. Raises `ProviderError` when text-to-speech fails."""
        while True:
            reply, sentence = await self._waiting.get()
            if reply is not self.reply:
                continue
            self._synthesis = asyncio.create_task(self._speak(reply, sentence))
            try:
                # The task is not awaited itself: an interruption cancels it, which must not end this loop.
                await asyncio.wait((self._synthesis,))
            finally:
                self._synthesis.cancel()
                reply.pending -= 1
            if not self._synthesis.cancelled():
                self._synthesis.result()

    async def _speak(self, reply: SpokenReply, sentence: Sentence) -> None:
        """Speak a sentence, a second time if its audio breaks off, as people do. Raises `ProviderError`."""
        if reply.turn is not None:
            attach(reply.turn.context)  # for the rest of this task, which is the sentence's own
        try:
            await self._synthesize(reply, sentence)
        except ProviderError as error:
            if sentence.start is None:
                raise
            logger.warning("text-to-speech broke off, repeating the sentence", reason=error.message)
            sentence.start, sentence.words = None, []
            await self._synthesize(reply, sentence)

    async def _synthesize(self, reply: SpokenReply, sentence: Sentence) -> None:
        if not count_letters(sentence.spoken):
            return
        before = " ".join(each.spoken for each in takewhile(lambda each: each is not sentence, reply.sentences))
        request = self._build_request(sentence.spoken, reply.id, before)
        is_first = True
        async with aclosing(self._convert_speech(request, self._wire)) as chunks:
            async for chunk in chunks:
                if is_first and reply.turn is not None:
                    reply.turn.record_step("first_audio", self._clock())
                is_first = False
                if sentence.start is None:
                    sentence.start = self.playout.queued
                at = (self.playout.queued - sentence.start) * 1000 // BYTES_PER_SECOND
                sentence.words += [Word(word.text, word.start_ms + at, word.end_ms + at) for word in chunk.words]
                if chunk.audio:
                    self.playout.add(chunk.audio)
                sentence.end = self.playout.queued
        sentence.is_whole = True
        self.playout.add_mark()

    async def render(self, text: str) -> bytes:
        """Return a text in the agent's voice, as mu-law at 8 kHz, for another party. Raises `ProviderError`."""
        settings = self._call.agent.settings
        spoken = "".join(piece.spoken for piece in normalize_text(text, settings.stt_language, settings.pronunciations))
        chunks = self._convert_speech(self._build_request(spoken, uuid4().hex, ""), PHONE_MULAW)
        return b"".join([chunk.audio async for chunk in chunks])

    def _build_request(self, text: str, reply_id: str, before: str) -> SpeechRequest:
        agent = self._call.agent.settings
        return SpeechRequest(
            text, agent.tts_voice_id, agent.tts_model, agent.stt_language, agent.voice_speed, reply_id, before
        )

    async def _convert_speech(self, request: SpeechRequest, target: AudioFormat) -> AsyncGenerator[SpeechChunk, None]:
        """Yield the speech in a format. Raises `ProviderError`."""
        provider = self._call.agent.text_to_speech
        converter: Converter | None = None
        self.characters[self._call.agent.id] += len(request.text)
        async with aclosing(provider.synthesize(request)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                converter = converter or Converter(provider.audio_format, target)
                yield SpeechChunk(converter.convert(chunk.audio), chunk.words)
        if converter is None:
            raise ProviderError(f"{provider.title} returned no audio")
        yield SpeechChunk(converter.convert(b"", last=True))

    def _record_first_frame(self) -> None:
        reply = self.reply
        if reply is not None and reply.started_at is None:
            reply.started_at = self._clock()
            if reply.turn is not None:
                reply.turn.record_step("first_frame", reply.started_at)
