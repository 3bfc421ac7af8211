"""The guides: the Markdown files of `docs/`, rendered to HTML, with links between them.

`guides` is a link to `docs/` in a checkout. `make wheels` copies what it leads to into the wheel.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import escape

FOLDER = Path(__file__).with_name("guides")
ROOT = "/docs/guides"
SECTIONS = {
    "tutorials": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "plugins": "Plugins",
    "": "About Switchboard",
}
"""Sections of the navigation by folder. Other folders, such as the decisions, are reached by links."""


@dataclass(frozen=True, slots=True)
class Guide:
    """A page of `docs/`: its name without `.md`, its title, and its Markdown."""

    name: str
    title: str
    text: str

    @property
    def address(self) -> str:
        """Path of the page on the server."""
        return get_address(self.name)


def get_address(name: str) -> str:
    """Return the path of a guide on the server. A folder's README has the path of the folder."""
    return f"{ROOT}/{name}".removesuffix("README").rstrip("/")


def slugify(heading: str) -> str:
    """Return the anchor of a heading, as GitHub derives it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Guides:
    """All guides, and the files that they show."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._markdown = _create_markdown(self)

    @cached_property
    def pages(self) -> dict[str, Guide]:
        """The guides by address."""
        found = {}
        for path in sorted(self._folder.rglob("*.md")):
            text, name = path.read_text(), path.relative_to(self._folder).as_posix().removesuffix(".md")
            title = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), path.stem)
            found[get_address(name)] = Guide(name, title.replace("`", ""), text)
        return found

    @cached_property
    def files(self) -> dict[str, Path]:
        """The pictures by address."""
        paths = sorted(self._folder.rglob("*.png"))
        return {f"{ROOT}/{path.relative_to(self._folder).as_posix()}": path for path in paths}

    def list_sections(self) -> list[tuple[str, list[Guide]]]:
        """Return the sections of the navigation with their guides, by title."""
        return [
            (name, sorted((guide for guide in self.pages.values() if _is_in(guide, folder)), key=lambda one: one.title))
            for folder, name in SECTIONS.items()
        ]

    def resolve(self, name: str, link: str) -> str | None:
        """Return the address of a link on a guide; None for what is only in the repository."""
        if re.match(r"[a-z]+:|#", link):
            return link
        target, mark, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        address = get_address(path.removesuffix(".md")) if path.endswith(".md") else f"{ROOT}/{path}"
        return f"{address}{mark}{anchor}" if address in self.pages or address in self.files else None

    def render(self, guide: Guide) -> str:
        """Return a guide as HTML."""
        return str(self._markdown.render(guide.text, {"name": guide.name}))


def _is_in(guide: Guide, folder: str) -> bool:
    first, _, rest = guide.name.rpartition("/")
    return rest != "README" and (first == folder or (bool(folder) and first.startswith(f"{folder}/")))


def split_guide(guide: Guide) -> Iterator[tuple[str, str, str]]:
    """Yield title, address, and text of each part of a guide that begins with a heading."""
    title, address, lines, fenced = guide.title, guide.address, list[str](), False
    for line in guide.text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        heading = None if fenced else re.match(r"(#+) (.+)", line)
        if heading is None:
            lines.append(line)
            continue
        if title and lines:
            yield title, address, _strip_markup(lines)
        title, lines = heading[2].replace("`", ""), []
        address = guide.address if heading[1] == "#" else f"{guide.address}#{slugify(heading[2])}"
    yield title, address, _strip_markup(lines)


def _strip_markup(lines: Sequence[str]) -> str:
    text = re.sub(r"\]\([^)]*\)", "]", " ".join(line for line in lines if not line.lstrip().startswith("```")))
    return re.sub(r"\s+", " ", re.sub(r"[`*|\[\]]|-{3,}|^\s*#+", " ", text)).strip()


def _create_markdown(guides: Guides) -> MarkdownIt:
    # HTML in a guide is text, so that a page has only what the renderer writes.
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def change_tokens(state: StateCore) -> None:
        _name_headings(state.tokens)
        _drop_empty_headers(state.tokens)
        for token in state.tokens:
            _resolve_links(guides, state.env["name"], token.children or [])

    markdown.core.ruler.push("guides", change_tokens)
    markdown.add_render_rule("fence", _render_code)
    markdown.add_render_rule("table_open", lambda *_rendering: '<div class="table-box" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_rendering: "</table></div>\n")
    return markdown


def _name_headings(tokens: Sequence[Token]) -> None:
    seen: dict[str, int] = {}
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            anchor = slugify(content.content)
            seen[anchor] = seen.get(anchor, -1) + 1
            heading.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)


def _drop_empty_headers(tokens: Sequence[Token]) -> None:
    """Make an empty header cell an ordinary one: a screen reader would announce a column without a name."""
    for opening, content, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not content.content:
            opening.tag = closing.tag = "td"


def _resolve_links(guides: Guides, name: str, tokens: Sequence[Token]) -> None:
    outside = False
    for token in tokens:
        if token.type == "image":
            token.attrs["src"] = guides.resolve(name, str(token.attrs["src"])) or ""
            token.attrs["loading"] = "lazy"
        elif token.type == "link_open":
            address = guides.resolve(name, str(token.attrs["href"]))
            outside = address is None
            if address is None:
                path = posixpath.normpath(posixpath.join(posixpath.dirname(name), str(token.attrs["href"])))
                token.tag, token.attrs = "span", {"class": "outside", "title": f"In the repository: {path[3:]}"}
            else:
                token.attrs["href"] = address
        elif token.type == "link_close" and outside:
            token.tag, outside = "span", False


def _render_code(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[index].content)}</code></pre>\n'
