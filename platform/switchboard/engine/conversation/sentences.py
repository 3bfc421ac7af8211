"""The sentences of a model's text, as they are spoken one by one."""

import re
from typing import Final

SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
LONG_SENTENCE: Final = 240
LONGEST_SENTENCE: Final = 2000


def split_sentences(text: str) -> tuple[list[str], str]:
    """Split a text into its complete sentences and the rest."""
    *ended, rest = SENTENCE_END.split(text)
    whole = [piece for sentence in ended for piece in _cut_sentence(sentence)]
    *pieces, rest = _cut_sentence(rest)
    whole += pieces
    if len(rest) > LONG_SENTENCE and (cut := max(rest.rfind(", "), rest.rfind(" ", 0, LONG_SENTENCE))) > 0:
        whole.append(rest[: cut + 1])
        rest = rest[cut + 1 :]
    return [sentence for sentence in whole if sentence.strip()], rest


def _cut_sentence(sentence: str) -> list[str]:
    """Cut a text without an end of a sentence: voices refuse it, and its normalization would hold the event loop."""
    pieces = []
    while len(sentence) > LONGEST_SENTENCE:
        cut = sentence.rfind(" ", 1, LONGEST_SENTENCE)
        cut = cut if cut > 0 else LONGEST_SENTENCE
        pieces.append(sentence[:cut])
        sentence = sentence[cut:]
    return [*pieces, sentence]
