"""Words in time: vendors count from the beginning of the text, the platform from each chunk's."""

from collections.abc import Sequence
from typing import Final

from switchboard.plugin_sdk import AudioFormat, SpeechChunk, Word

ROUNDING_SECONDS: Final = 0.01


class WordTimeline:
    """What was spoken of one text so far. A word may be told a little after its audio: it then begins before its chunk."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._yielded = 0

    @property
    def seconds(self) -> float:
        """How much was yielded."""
        return self._yielded / self._format.bytes_per_second

    def chunk(self, audio: bytes, words: Sequence[Word]) -> SpeechChunk:
        """The next audio, and words timed from the text's beginning."""
        begun = int(self.seconds * 1000)
        self._yielded += len(audio)
        return SpeechChunk(audio, tuple(Word(word.text, word.start_ms - begun, word.end_ms - begun) for word in words))


class WordAssembler:
    """Makes words of characters that come in pieces."""

    def __init__(self) -> None:
        self._text = ""
        self._start = self._end = 0.0

    def add(
        self, characters: Sequence[str], starts: Sequence[float], ends: Sequence[float], *, begun: float
    ) -> list[Word]:
        """Take a chunk's characters and their seconds; answers the words that are now whole.

        The seconds count from the text's beginning. Where they go back they count from the chunk's, which is `begun` seconds after that.
        """
        since = begun if starts and starts[0] < self._end - ROUNDING_SECONDS else 0.0
        words = []
        for character, start, end in zip(characters, starts, ends, strict=True):
            if character.isspace():
                words += self.rest()
                continue
            if not self._text:
                self._start = since + start
            self._text += character
            self._end = since + end
        return words

    def rest(self) -> list[Word]:
        """The word that nothing has ended yet."""
        if not self._text:
            return []
        text, self._text = self._text, ""
        return [Word(text, round(self._start * 1000), round(self._end * 1000))]
