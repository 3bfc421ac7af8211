"""The agent's voice: sentence by sentence to text-to-speech, on to the playout, and the account of what was really heard."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from switchboard.engine.conversation.call import LiveCall
from switchboard.engine.conversation.latency import TurnClock
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.conversation.media.playout import BYTES_PER_SECOND, Playout
from switchboard.engine.conversation.speech.text_normalization import (
    Piece,
    count_letters,
    find_heard_text,
    normalize_text,
)
from switchboard.plugin_sdk import AudioFormat, Encoding, ProviderError, SpeechRequest, Word

logger = structlog.get_logger()


@dataclass(slots=True)
class Sentence:
    """A sentence, how it is read aloud, and where its audio lies in the playout."""

    text: str
    pieces: Sequence[Piece] = ()
    start: int | None = None
    end: int = 0
    words: list[Word] = field(default_factory=list)

    def again(self) -> None:
        """What was spoken of it breaks off: it is said from its beginning, after that."""
        self.start, self.words = None, []

    def heard(self, until: int) -> str:
        """As much of the text as lies before a place in the playout: by the words' times where they are known, else by its share."""
        if self.start is None or until <= self.start:
            return ""
        if until >= self.end:
            return self.text
        if self.words:
            milliseconds = (until - self.start) * 1000 // BYTES_PER_SECOND
            return find_heard_text(
                self.pieces, sum(count_letters(word.text) for word in self.words if word.end_ms <= milliseconds)
            )
        words = self.text.split()
        return " ".join(words[: int(len(words) * (until - self.start) / (self.end - self.start))])


@dataclass(slots=True)
class SpokenReply:
    """What the agent says in one turn. `whole` is set once nothing more will be added."""

    turn: TurnClock | None = None
    sentences: list[Sentence] = field(default_factory=list)
    pending: int = 0
    whole: bool = False
    started_at: float | None = None
    in_history: int = 0

    def heard(self, until: int) -> str:
        """What was heard of it."""
        return " ".join(filter(None, (sentence.heard(until) for sentence in self.sentences)))


class SpeechOutput:
    """Says one reply at a time. `on_spoken(reply, heard, interrupted)` is called when a reply is over."""

    def __init__(self, call: LiveCall, playout: Playout, encoding: Encoding, clock: Callable[[], float]) -> None:
        self._call = call
        self._playout = playout
        self._wire = AudioFormat(encoding, 8000)
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[SpokenReply, Sentence]] = asyncio.Queue()
        self._synthesis: asyncio.Task[None] | None = None
        self.reply: SpokenReply | None = None
        self.characters = 0
        self.on_spoken: Callable[[SpokenReply, str, bool], None] = lambda _reply, _heard, _interrupted: None
        playout.on_sent = self._sent

    def begin(self, turn: TurnClock | None = None) -> SpokenReply:
        """Start a reply; the one before it must be over."""
        self.reply = SpokenReply(turn)
        return self.reply

    def say(self, reply: SpokenReply, text: str) -> None:
        """Add a sentence to a reply; nothing happens where the reply was interrupted."""
        if reply is not self.reply or not text.strip():
            return
        agent, text = self._call.agent, text.strip()
        sentence = Sentence(text, normalize_text(text, agent.stt_language, agent.pronunciations))
        reply.sentences.append(sentence)
        reply.pending += 1
        self._waiting.put_nowait((reply, sentence))

    def is_talking(self) -> bool:
        """Whether the caller hears the agent, or is about to."""
        return self._playout.is_playing(self._clock()) or (self.reply is not None and self.reply.pending > 0)

    def interrupt(self) -> str:
        """Fall silent; answers what was heard of the reply."""
        reply, self.reply = self.reply, None
        heard_bytes = self._playout.clear()
        while not self._waiting.empty():
            self._waiting.get_nowait()
        if self._synthesis is not None:
            self._synthesis.cancel()
        if reply is None:
            return ""
        heard = reply.heard(heard_bytes)
        self.on_spoken(reply, heard, True)
        return heard

    def tick(self) -> None:
        """Notice that a reply is over."""
        reply = self.reply
        if reply is None or not reply.whole or reply.pending or self._playout.is_playing(self._clock()):
            return
        self.reply = None
        self.on_spoken(reply, " ".join(sentence.text for sentence in reply.sentences), False)

    async def run(self) -> None:
        """Synthesize what is said, until cancelled. Raises `ProviderError` where the voice is gone."""
        while True:
            reply, sentence = await self._waiting.get()
            if reply is not self.reply:
                continue
            self._synthesis = asyncio.create_task(self._speak(reply, sentence))
            try:
                # Not awaited itself: an interruption cancels it, and that must not end this loop.
                await asyncio.wait((self._synthesis,))
            finally:
                self._synthesis.cancel()
                reply.pending -= 1
            if not self._synthesis.cancelled():
                self._synthesis.result()

    async def _speak(self, reply: SpokenReply, sentence: Sentence) -> None:
        """Say a sentence; where the voice breaks off in the middle of it, once more, as people do. Raises `ProviderError`."""
        try:
            await self._synthesize(reply, sentence)
        except ProviderError as error:
            if sentence.start is None:
                raise
            logger.warning("the voice broke off, saying the sentence again", reason=error.message)
            sentence.again()
            await self._synthesize(reply, sentence)

    async def _synthesize(self, reply: SpokenReply, sentence: Sentence) -> None:
        agent, provider = self._call.agent, self._call.text_to_speech
        text = "".join(piece.spoken for piece in sentence.pieces)
        if not count_letters(text):
            return
        request = SpeechRequest(text, agent.tts_voice_id, agent.tts_model, agent.stt_language, agent.voice_speed)
        converter: Converter | None = None
        self.characters += len(text)
        async with aclosing(provider.synthesize(request)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                if converter is None:
                    converter = Converter(provider.audio_format, self._wire)
                    self._first_audio(reply)
                self._play(sentence, converter.convert(chunk.audio), chunk.words)
        if converter is None:
            raise ProviderError(f"{provider.title} spoke nothing")
        self._play(sentence, converter.convert(b"", last=True), ())
        self._playout.mark()

    def _first_audio(self, reply: SpokenReply) -> None:
        if reply.turn is not None:
            reply.turn.reach("first_audio", self._clock())

    def _play(self, sentence: Sentence, audio: bytes, words: tuple[Word, ...]) -> None:
        if sentence.start is None:
            sentence.start = self._playout.queued
        before = (self._playout.queued - sentence.start) * 1000 // BYTES_PER_SECOND
        sentence.words += [Word(word.text, word.start_ms + before, word.end_ms + before) for word in words]
        if audio:
            self._playout.add(audio)
        sentence.end = self._playout.queued

    def _sent(self, _offset: int) -> None:
        reply = self.reply
        if reply is not None and reply.started_at is None:
            reply.started_at = self._clock()
            if reply.turn is not None:
                reply.turn.reach("first_frame", reply.started_at)
