"""Conversion of word times: vendors count from the start of the text, the platform from the start of each chunk."""

from collections.abc import Sequence
from typing import Final

from switchboard.plugin_sdk import AudioFormat, SpeechChunk, Word

ROUNDING_SECONDS: Final = 0.01


class WordTimeline:
    """Position in one text's speech. A word that arrives after its audio starts before its chunk."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._yielded = 0

    @property
    def seconds(self) -> float:
        """Duration of the audio yielded so far."""
        return self._yielded / self._format.bytes_per_second

    def chunk(self, audio: bytes, words: Sequence[Word]) -> SpeechChunk:
        """Return the next chunk, with words timed from the start of the text."""
        begun = int(self.seconds * 1000)
        self._yielded += len(audio)
        return SpeechChunk(audio, tuple(Word(word.text, word.start_ms - begun, word.end_ms - begun) for word in words))


class WordAssembler:
    """Assembles words from timed characters that arrive in pieces."""

    def __init__(self) -> None:
        self._text = ""
        self._start = self._end = 0.0

    def add(
        self, characters: Sequence[str], starts: Sequence[float], ends: Sequence[float], *, begun: float
    ) -> list[Word]:
        """Add a chunk's characters with their times in seconds, and return the words that are now complete.

        Times count from the start of the text. If they jump back, they count from the chunk's start, `begun` seconds
        later.
        """
        since = begun if starts and starts[0] < self._end - ROUNDING_SECONDS else 0.0
        words = []
        for character, start, end in zip(characters, starts, ends, strict=False):
            if character.isspace():
                words += self.rest()
                continue
            if not self._text:
                self._start = since + start
            self._text += character
            self._end = since + end
        return words

    def rest(self) -> list[Word]:
        """Return the last, unterminated word."""
        if not self._text:
            return []
        text, self._text = self._text, ""
        return [Word(text, round(self._start * 1000), round(self._end * 1000))]
