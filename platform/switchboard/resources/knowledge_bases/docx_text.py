"""Text of a DOCX file: a ZIP archive with XML (ECMA-376, part 1, section 17).

The XML is read as it is unpacked, and no tree of it is built. mammoth 1.13 (BSD-2-Clause) was measured instead: for a
document of 5 000 paragraphs, of 7 MB as XML, it needs 12 seconds of the processor, which is more than the parser
process has, and this module 0.9. It also knows headings by the names of their styles only, not by their outline level.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from switchboard.resources.knowledge_bases.formats import FormatError

MAX_XML_BYTES = 64 * 1024**2
BLOCK = 64 * 1024
WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main", "http://purl.oclc.org/ooxml/wordprocessingml/main",
)  # fmt: skip
"""Namespace of the transitional form, which Word writes by default, and of the strict one."""
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
SKIPPED = frozenset({"del", "moveFrom", "pPrChange"})
"""Elements with what tracked changes have removed."""
PROPERTIES = frozenset({"pStyle", "basedOn", "name", "outlineLvl", "numPr", "numId"})
HEADING_NAME = re.compile(r"(?:heading|title)\s?([1-9]?)", re.IGNORECASE)
BODY_TEXT_LEVEL = 9
"""Outline level of text that is no heading (section 17.3.1.20)."""
MAX_BASES = 12
"""Styles that a style may be based on, one on the other."""
SEPARATOR = " | "


@dataclass(slots=True)
class _Format:
    """The properties of a paragraph, or of a style of paragraphs, that its text depends on; None is not said."""

    style: str = ""
    name: str = ""
    outline_level: int | None = None
    is_list_item: bool | None = None

    def read(self, tag: str, value: str) -> None:
        """Read one property."""
        if tag in ("pStyle", "basedOn"):
            self.style = value
        elif tag == "name":
            self.name = value
        elif tag == "outlineLvl" and value.isdecimal() and len(value) == 1:
            self.outline_level = int(value)
        elif tag == "numPr":
            self.is_list_item = True
        elif tag == "numId" and value == "0":
            # The number of a style is taken away (section 17.9.18).
            self.is_list_item = False


@dataclass(slots=True)
class _Paragraph:
    properties: _Format = field(default_factory=_Format)
    text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    rows: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def end_cell(self) -> None:
        self.cells.append(" ".join(self.texts))
        self.texts = []

    def end_row(self) -> None:
        if row := SEPARATOR.join(self.cells).strip(SEPARATOR):
            self.rows.append(row)
        self.cells = []


class _Reader:
    """Calls `start`, `end`, and `data` for the elements of WordprocessingML, without those that are not shown. A
    document type declaration, which entity-expansion and external-entity attacks need, aborts the reading.
    """

    def __init__(self) -> None:
        self._skipped = 0

    def read(self, archive: zipfile.ZipFile, name: str) -> None:
        """Read one file of an archive."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._refuse
        size = 0
        with archive.open(name) as file:
            while block := file.read(BLOCK):
                size += len(block)
                if size > MAX_XML_BYTES:
                    raise FormatError(f"unpacks to more than {MAX_XML_BYTES // 1024**2} MiB")
                parser.Parse(block, False)
            parser.Parse(b"", True)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, tag: str) -> None:
        """Handle the end of an element."""

    def data(self, data: str) -> None:
        """Handle text, which may come in pieces."""

    def _refuse(self, *_declared: object) -> None:
        raise FormatError("is a DOCX file whose XML declares a document type, which is not allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, tag = name.rpartition(" ")
        # The fallback of a text box has its text a second time, for programs that do not know text boxes.
        skips = tag in SKIPPED if namespace in WORD else tag == "Fallback" and namespace == COMPATIBILITY
        if self._skipped or skips:
            self._skipped += 1
        elif namespace in WORD:
            self.start(tag, attributes)

    def _end(self, name: str) -> None:
        namespace, _, tag = name.rpartition(" ")
        if self._skipped:
            self._skipped -= 1
        elif namespace in WORD:
            self.end(tag)

    def _data(self, data: str) -> None:
        if not self._skipped:
            self.data(data)


def _get_value(attributes: Mapping[str, str], name: str) -> str:
    """Return an attribute by its name without a namespace."""
    return next((value for key, value in attributes.items() if key.rpartition(" ")[2] == name), "")


class _StylesReader(_Reader):
    """Collects the styles of paragraphs by their ids. Word writes the names of its own styles in English in every
    language, and translates their ids: `berschrift1` is `heading 1`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.styles: dict[str, _Format] = {}
        self._style = _Format()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "style":
            self._style = _Format()
            if _get_value(attributes, "type") == "paragraph":
                self.styles[_get_value(attributes, "styleId")] = self._style
        elif tag in PROPERTIES:
            self._style.read(tag, _get_value(attributes, "val"))


class _DocumentReader(_Reader):
    """Collects text by paragraph and by table. A paragraph may contain others, in a text box."""

    def __init__(self, styles: Mapping[str, _Format]) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._styles = styles
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._in_text = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._in_text = tag == "t"
        if tag == "p":
            self._paragraphs.append(_Paragraph())
        elif tag == "tbl":
            self._tables.append(_Table())
        elif not self._paragraphs:
            return
        elif tag in ("tab", "br", "cr"):
            self._paragraphs[-1].text.append(" ")
        elif tag == "noBreakHyphen":
            self._paragraphs[-1].text.append("-")
        elif tag in PROPERTIES:
            self._paragraphs[-1].properties.read(tag, _get_value(attributes, "val"))

    def end(self, tag: str) -> None:
        self._in_text = False
        if tag == "p":
            paragraph = self._paragraphs.pop()
            if text := "".join(paragraph.text).strip():
                self._add(text if self._tables else self._build_prefix(paragraph.properties) + text)
        elif tag == "tc" and self._tables:
            self._tables[-1].end_cell()
        elif tag == "tr" and self._tables:
            self._tables[-1].end_row()
        elif tag == "tbl":
            self._add(*self._tables.pop().rows)

    def data(self, data: str) -> None:
        if self._in_text and self._paragraphs:
            self._paragraphs[-1].text.append(data)

    def _add(self, *lines: str) -> None:
        if self._tables:
            self._tables[-1].texts += lines
        elif lines:
            self.parts.append("\n".join(lines))

    def _build_prefix(self, paragraph: _Format) -> str:
        formats = [paragraph]
        while formats[-1].style and len(formats) <= MAX_BASES:
            # A style that the file does not have is known by its id only.
            formats.append(self._styles.get(formats[-1].style, _Format(name=formats[-1].style)))
        level = next((level for level in map(_get_heading_level, formats) if level is not None), BODY_TEXT_LEVEL)
        if level < BODY_TEXT_LEVEL:
            return "#" * min(level + 1, 6) + " "
        items = (part.is_list_item for part in formats if part.is_list_item is not None)
        return "- " if next(items, False) else ""


def _get_heading_level(part: _Format) -> int | None:
    """Return the outline level that a paragraph or a style says, from 0; None if it says none."""
    if part.outline_level is not None:
        return part.outline_level
    heading = HEADING_NAME.fullmatch(part.name)
    return int(heading[1] or 1) - 1 if heading else None


def extract_docx_text(data: bytes) -> str:
    """Extract paragraphs, with headings and list items marked, and tables, with a line for each row and a bar between
    its cells. Raises `FormatError`.
    """
    styles = _StylesReader()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if "word/styles.xml" in archive.namelist():
                styles.read(archive, "word/styles.xml")
            document = _DocumentReader(styles.styles)
            document.read(archive, "word/document.xml")
    except (
        zipfile.BadZipFile,
        KeyError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OSError,
        expat.ExpatError,
    ) as error:
        raise FormatError(f"is not a readable DOCX file ({type(error).__name__})") from None
    return "\n\n".join(document.parts)
