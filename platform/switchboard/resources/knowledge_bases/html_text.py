"""Text of an HTML page: headings after `#`, list items after `-`, table rows as lines, without scripts, styles, and
menus.

lxml reads any input in linear time; Python's own parser needs a minute for some pages of a megabyte.

Converters to Markdown were measured instead in November 2026. markdownify 1.2 (MIT) and html2text 2025.4 (GPL) need
more than ten seconds for hostile pages of 31 to 250 kB, and markdownify raises `RecursionError` for nested elements.
html-to-markdown 3.21 (MIT) is linear, but returns nothing, and no error, for text below 1 024 elements, keeps buttons,
and puts addresses of links and images, emphasis, and whole drawings (SVG in base64) into the passages. inscriptis 2.7
(Apache-2.0) has no headings.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from lxml import etree

if TYPE_CHECKING:
    from lxml.etree._saxparser import ParserTarget

SILENT = frozenset(
    {"script", "style", "noscript", "template", "head", "nav", "svg", "iframe", "object", "select", "button"}
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
BLOCKS = frozenset(
    [
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "footer",
        "aside",
        "ul",
        "ol",
        "dl",
        "dt",
        "table",
        "blockquote",
        "pre",
        "figure",
        "form",
        "hr",
        "address",
        "details",
        "figcaption",
    ]
)
LINES = frozenset({"br", "tr", "dd"})
CELLS = frozenset({"td", "th"})
BLOCK = 64 * 1024


class _Reader:
    """Target of lxml's parser (https://lxml.de/parsing.html#the-target-parser-interface)."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._run: list[str] = []
        self._silent: list[str] = []
        self._preformatted = 0

    def close(self) -> str:
        """Return the text."""
        self._end_run()
        lines = [re.sub(r"[ \t]+", " ", line).strip(" |") for line in "".join(self._parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        self._end_run()
        if tag == "body":
            # An unclosed head ends here.
            self._silent = []
        elif tag in SILENT:
            self._silent.append(tag)
        elif tag in HEADINGS:
            self._parts.append(f"\n\n{HEADINGS[tag]} ")
        elif tag == "li":
            self._parts.append("\n- ")
        elif tag in BLOCKS or tag in LINES:
            self._parts.append("\n\n" if tag in BLOCKS else "\n")
        elif tag == "img":
            self.data(attributes.get("alt", ""))
        self._preformatted += tag == "pre"

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        self._end_run()
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag in BLOCKS or tag in HEADINGS:
            self._parts.append("\n\n")
        elif tag in CELLS:
            self._parts.append(" | ")
        self._preformatted -= tag == "pre" and self._preformatted > 0

    def data(self, data: str) -> None:
        """Handle text, which may come in pieces of one character."""
        if not self._silent:
            self._run.append(data)

    def _end_run(self) -> None:
        """Keep the text between two tags, as one piece."""
        if self._run:
            text = "".join(self._run)
            self._parts.append(text if self._preformatted else re.sub(r"\s+", " ", text))
            self._run.clear()


def extract_html_text(data: bytes) -> str:
    """Extract the text of a page in UTF-8. HTML has no errors: anything that is not understood is text."""
    parser = etree.HTMLParser(
        target=cast("ParserTarget[str]", _Reader()), encoding="utf-8", huge_tree=True, no_network=True
    )
    for start in range(0, len(data), BLOCK):
        parser.feed(data[start : start + BLOCK])
    return parser.close()
