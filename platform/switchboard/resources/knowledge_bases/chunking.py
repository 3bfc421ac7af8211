"""Chunking: split a text into passages along its structure, each within the size that an embedding model reads, with
its headings.

Paragraphs (separated by an empty line) stay whole if they fit, and small ones are combined. A passage that continues a
section repeats the last sentence of the passage before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

SIZE = 900
"""Characters of a passage: about 220 English tokens, of the 256 that small models read."""
OVERLAP = 160
MAX_HEADING = 120
HEADING = re.compile(rf"^(#{{1,6}})[ \t]+(\S.{{0,{MAX_HEADING}}})$")
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")


@dataclass(slots=True)
class _Section:
    """The text under one heading; `headings` are the headings above it, outermost first."""

    headings: list[str]
    paragraphs: list[str] = field(default_factory=list)


def split_passages(text: str) -> list[str]:
    """Split a text into passages, in order; none is empty."""
    return [passage for section in _sections(text) for passage in _passages(section)]


def _sections(text: str) -> Iterator[_Section]:
    levels: list[tuple[int, str]] = []
    section = _Section([])
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        heading = HEADING.match(line)
        title = heading[2].strip(" #") if heading else ""
        if (title or not line.strip()) and lines:
            section.paragraphs.append("\n".join(lines))
            lines = []
        if heading and title:
            yield section
            levels = [*(above for above in levels if above[0] < len(heading[1])), (len(heading[1]), title)]
            section = _Section([name for _, name in levels])
        elif line.strip():
            lines.append(line.rstrip())
    yield section


def _passages(section: _Section) -> Iterator[str]:
    above = " > ".join(section.headings)[-3 * MAX_HEADING :]
    # Minus the separators between the parts.
    size = SIZE - len(above) - 4
    if above and not section.paragraphs:
        yield above
        return
    for body in _pack_paragraphs(section.paragraphs, size):
        yield f"{above}\n\n{body}" if above else body


def _pack_paragraphs(paragraphs: list[str], size: int) -> Iterator[str]:
    body = ""
    for piece, apart in _pieces(paragraphs, size - OVERLAP):
        if body and len(body) + len(apart) + len(piece) > size:
            yield body
            sentences = _sentences(body)
            tail = sentences[-1] if len(sentences) > 1 and len(sentences[-1]) <= OVERLAP else ""
            body = f"{tail}{apart}{piece}" if tail else piece
        else:
            body = f"{body}{apart}{piece}" if body else piece
    if body:
        yield body


def _pieces(paragraphs: list[str], size: int) -> Iterator[tuple[str, str]]:
    """Yield paragraphs, long ones sentence by sentence, each with the separator from the one before."""
    for paragraph in paragraphs:
        if len(paragraph) <= size:
            yield paragraph, "\n\n"
            continue
        apart = "\n\n"
        for sentence in _sentences(paragraph):
            for part in _parts(sentence, size):
                yield part, apart
                apart = " "


def _sentences(paragraph: str) -> list[str]:
    return [sentence.strip() for sentence in SENTENCE_END.split(paragraph) if sentence and sentence.strip()]


def _parts(sentence: str, size: int) -> Iterator[str]:
    """Split a sentence at spaces if it is too long, or anywhere if it has none."""
    place = 0
    while len(sentence) - place > size:
        cut = sentence.rfind(" ", place + size // 2, place + size)
        end = cut if cut > 0 else place + size
        if part := sentence[place:end].strip():
            yield part
        place = end
    if part := sentence[place:].strip():
        yield part
