"""The pages of the documentation, each built when it is first asked for, in a thread: the event loop carries audio."""

import asyncio
import gzip
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from quart import Quart, current_app

from switchboard.apps.dashboard.ui.rendering import THEMES, Shell
from switchboard.apps.docs.api_pages import ApiPages
from switchboard.apps.docs.guides import ROOT, Guides
from switchboard.apps.docs.openapi_document import build_openapi_document
from switchboard.apps.docs.samples import LANGUAGES
from switchboard.apps.docs.search import build_search_index
from switchboard.foundation.languages import DEFAULT_LANGUAGE, use_language
from switchboard.foundation.settings import Settings

HTML, JSON, PNG = "text/html; charset=utf-8", "application/json", "image/png"
HOME, DOCUMENT, SEARCH, ERRORS, EVENTS = "/docs", "/openapi.json", "/docs/search.json", "errors", "events"
API = "/docs/api/"
MISSING = "missing"
"""Template of the page at any other path."""


@dataclass(frozen=True, slots=True)
class DocsFile:
    """A file of the documentation, also compressed where that makes it smaller."""

    plain: bytes
    media_type: str
    entity_tag: str
    status: int
    compressed: bytes | None


def _pack(plain: bytes, media_type: str, status: int = 200) -> DocsFile:
    compressed = None if media_type == PNG else gzip.compress(plain, mtime=0)
    return DocsFile(plain, media_type, hashlib.sha256(plain).hexdigest()[:32], status, compressed)


class _Builder:
    """Everything that pages are built from, read once."""

    def __init__(self, app: Quart, base_url: str) -> None:
        self._app, self._base_url, self.guides = app, base_url, Guides()

    @cached_property
    def api(self) -> ApiPages:
        return ApiPages(build_openapi_document(self._app, self._base_url))

    def has(self, path: str) -> bool:
        return path in (DOCUMENT, SEARCH) or path in self.guides.files or self._find_template(path) is not None

    def build(self, path: str, theme: str) -> DocsFile:
        """Build the page or file at a path, or the page for an unknown path."""
        if path == DOCUMENT:
            return _pack(json.dumps(self.api.document).encode(), JSON)
        if path == SEARCH:
            return _pack(build_search_index(self.api, self.guides), JSON)
        if path in self.guides.files:
            return _pack(self.guides.files[path].read_bytes(), PNG)
        template, values = self._find_template(path) or (MISSING, {})
        shell = Shell(path, theme, DEFAULT_LANGUAGE)
        page = self._app.jinja_env.get_template(f"docs/{template}.html")
        with use_language(DEFAULT_LANGUAGE):
            rendered = page.render(shell=shell, api=self.api, guides=self.guides, languages=LANGUAGES, **values)
        return _pack(rendered.encode(), HTML, 404 if template == MISSING else 200)

    def _find_template(self, path: str) -> tuple[str, Mapping[str, object]] | None:
        tag = path.removeprefix(API)
        if path == HOME:
            return "home", {}
        if path in self.guides.pages:
            return "guide", {"guide": self.guides.pages[path]}
        if not path.startswith(API) or path.startswith(ROOT):
            return None
        if tag in (ERRORS, EVENTS):
            return tag, {}
        return ("resource", {"tag": tag}) if tag in self.api.tags else None


@dataclass(frozen=True, slots=True)
class DocsSite:
    """The built pages of a process, by path and theme. There are no more of them than there are files and tags."""

    settings: Settings
    _building: threading.Lock = field(default_factory=threading.Lock, init=False)
    _builders: list[_Builder] = field(default_factory=list, init=False)
    _built: dict[tuple[str, str], DocsFile] = field(default_factory=dict, init=False)

    async def find(self, path: str, theme: str) -> DocsFile:
        """Return the page or file at a path, in a theme of the dashboard, or in the browser's for any other text."""
        is_page = path.startswith(HOME) and not path.endswith((".json", ".png"))
        key = path, theme if is_page and theme in THEMES else ""
        if key in self._built:
            return self._built[key]
        # Templates use the request, which a thread has by its context, and the application, which it needs itself.
        app: Quart = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
        return await asyncio.to_thread(self._build, app, *key)

    def _build(self, app: Quart, path: str, theme: str) -> DocsFile:
        with self._building:
            if not self._builders:
                self._builders.append(_Builder(app, self.settings.base_url))
            (builder,) = self._builders
            key = path if builder.has(path) else MISSING, theme
            if key not in self._built:
                self._built[key] = builder.build(*key)
            return self._built[key]
