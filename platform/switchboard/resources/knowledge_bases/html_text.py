"""Text of an HTML page: headings after `#`, list items after `-`, table rows as lines, without scripts, styles, and
menus.
"""

import re
from html.parser import HTMLParser

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


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._preformatted = 0

    def text(self) -> str:
        lines = [re.sub(r"[ \t]+", " ", line).strip(" |") for line in "".join(self._parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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
            self.handle_data(next((value or "" for name, value in attrs if name == "alt"), ""))
        self._preformatted += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag in BLOCKS or tag in HEADINGS:
            self._parts.append("\n\n")
        elif tag in CELLS:
            self._parts.append(" | ")
        self._preformatted -= tag == "pre" and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))


def extract_html_text(data: bytes) -> str:
    """Extract the text of a page in UTF-8. HTML has no errors: anything that is not understood is text."""
    reader = _Reader()
    reader.feed(data.decode(errors="replace"))
    reader.close()
    return reader.text()
