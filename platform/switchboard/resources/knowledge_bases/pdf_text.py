"""Text of a PDF file."""

import io
import logging
import re

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from switchboard.resources.knowledge_bases.formats import MAX_TEXT_CHARACTERS, TOO_MUCH_TEXT, FormatError

MAX_PAGES = 2_000


def extract_pdf_text(data: bytes) -> str:
    """Extract each page's text with paragraphs separated. Raises `FormatError`, also for a file with a password."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FormatError("is a PDF file with a password")
        if len(reader.pages) > MAX_PAGES:
            raise FormatError(f"has {len(reader.pages)} pages; at most {MAX_PAGES} are read")
        pages: list[str] = []
        for page in reader.pages:
            pages.append(_paragraphs(page.extract_text()))
            if sum(map(len, pages)) > MAX_TEXT_CHARACTERS:
                raise FormatError(TOO_MUCH_TEXT)
    except FormatError:
        raise
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OSError,
        NotImplementedError,
    ) as error:
        # A broken file makes the library raise arbitrary exceptions of its dependencies.
        raise FormatError(f"is not a readable PDF file ({type(error).__name__})") from None
    return "\n\n".join(filter(None, pages))


def _paragraphs(page: str) -> str:
    """Join the lines of a page within sentences, because PDF line breaks come from the layout."""
    text = re.sub(r"[ \t]+\n", "\n", page)
    text = re.sub(r"(?<=\w)-\n(?=[a-zà-ÿ])", "", text)
    return re.sub(r"(?<=[^\n.!?:;])\n(?=[a-zà-ÿ(,])", " ", text).strip()
