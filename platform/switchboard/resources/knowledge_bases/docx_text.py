"""Text of a DOCX file: a ZIP archive with XML."""

import io
import re
import zipfile
from xml.parsers import expat

from switchboard.resources.knowledge_bases.formats import FormatError

MAX_XML_BYTES = 64 * 1024**2
BLOCK = 64 * 1024
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


class _Reader:
    """Collects text by paragraph. A document type declaration, which entity-expansion and external-entity attacks
    need, aborts the reading.
    """

    def __init__(self) -> None:
        self.paragraphs: list[str] = []
        self._text: list[str] = []
        self._in_text = False
        self._prefix = ""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._refuse
        self.parse = parser.Parse

    def _refuse(self, *_declared: object) -> None:
        raise FormatError("is a DOCX file whose XML declares a document type, which is not allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag, value = name.removeprefix(f"{WORD} "), attributes.get(f"{WORD} val", "")
        if tag == "p":
            self._text, self._prefix = [], ""
        elif tag == "pStyle" and (heading := re.fullmatch(r"(?:Heading|Title)\s?(\d?)", value, re.IGNORECASE)):
            self._prefix = "#" * min(int(heading[1] or 1), 6) + " "
        elif tag == "numPr" and not self._prefix:
            self._prefix = "- "
        elif tag in ("tab", "br", "cr"):
            self._text.append(" ")
        self._in_text = tag == "t"

    def _end(self, name: str) -> None:
        tag = name.removeprefix(f"{WORD} ")
        self._in_text = False
        if tag == "p" and (text := "".join(self._text).strip()):
            self.paragraphs.append(self._prefix + text)
            self._text = []

    def _data(self, data: str) -> None:
        if self._in_text:
            self._text.append(data)


def extract_docx_text(data: bytes) -> str:
    """Extract paragraphs, with headings and list items marked; a table's cells are paragraphs. Raises `FormatError`."""
    reader, size = _Reader(), 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("word/document.xml") as document:
            while block := document.read(BLOCK):
                size += len(block)
                if size > MAX_XML_BYTES:
                    raise FormatError(f"unpacks to more than {MAX_XML_BYTES // 1024**2} MiB")
                reader.parse(block, False)
            reader.parse(b"", True)
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
    return "\n\n".join(reader.paragraphs)
