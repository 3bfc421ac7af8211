"""Crawl the dashboard as a browser without scripts: pages, forms, and the addresses that scripts use."""

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from tests.attack.http_client import HttpClient
from tests.attack.organization import UUID, VIEW_QUERY

STARTS = ("/dashboard", f"/dashboard/calls?{VIEW_QUERY}")
"""The overview, and a page that is shown by a query: each path is crawled once, mostly without one."""
MAX_PAGES = MAX_OF_KIND = 400
"""Pages of a crawl, altogether and of those that differ by ids only."""
LINKS = ("href", "src")
REDIRECTS = (302, 303)
"""Statuses of pages that lead to a file."""
NOT_CRAWLED = ("/dashboard/static", "/dashboard/sign-in", "/dashboard/client-sdks")


@dataclass(slots=True)
class Form:
    """A form that is posted: the names and values that a browser would send, and the values of each name that its page
    offers.
    """

    fields: list[tuple[str, str]] = field(default_factory=list)
    offered: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Crawled:
    """Addresses without queries: pages, and the targets of forms and scripts. `forms` has the first form that was found
    for a target.
    """

    pages: set[str] = field(default_factory=set)
    actions: set[str] = field(default_factory=set)
    forms: dict[str, Form] = field(default_factory=dict)


class _LinkParser(HTMLParser):
    """Collects the links, forms, and targets of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[tuple[str, Form]] = []
        self.script_targets: list[str] = []
        self._named: defaultdict[str, Form] = defaultdict(Form)
        self._form: Form | None = None
        self._select = self._text_area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = self._named[given["id"]] if "id" in given else Form()
            if given.get("method", "").lower() == "post":
                self.forms.append((given.get("action", ""), self._form))
        if "formaction" in given:
            self.forms.append((given["formaction"], self._form or Form()))
        self.links += [given[name] for name in LINKS if name in given]
        self.script_targets += [value for name, value in given.items() if name.startswith("data-")]
        form = self._named[given["form"]] if "form" in given else self._form
        if form is not None:
            self._read_field(tag, given, form)

    def _read_field(self, tag: str, given: dict[str, str], form: Form) -> None:
        name, value = given.get("name", ""), given.get("value", "")
        if tag == "select":
            self._select = name
        elif tag == "textarea":
            self._text_area = name
            form.fields.append((name, ""))
        elif tag == "option" and self._select:
            self._offer(form, self._select, value, is_chosen="selected" in given)
        elif tag == "input" and name:
            is_choice = given.get("type") in ("checkbox", "radio")
            self._offer(form, name, value or ("on" if is_choice else ""), is_chosen=not is_choice or "checked" in given)

    def _offer(self, form: Form, name: str, value: str, *, is_chosen: bool) -> None:
        form.offered.setdefault(name, []).append(value)
        if is_chosen:
            form.fields.append((name, value))

    def handle_data(self, data: str) -> None:
        if self._text_area and self._form is not None:
            name, text = self._form.fields.pop()
            self._form.fields.append((name, text + data.removeprefix("\n")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select" and self._form is not None and self._select:
            # A browser sends the first option if none is selected.
            offered = self._form.offered.get(self._select, [])
            if offered and not any(name == self._select for name, _ in self._form.fields):
                self._form.fields.append((self._select, offered[0]))
            self._select = ""
        elif tag == "textarea":
            self._text_area = ""
        elif tag == "form":
            self._form = None


async def crawl_dashboard(browser: HttpClient, *, but: tuple[str, ...] = ()) -> Crawled:
    """Follow every link from the first pages, each path once, except to paths that begin with one of `but`."""
    found, due, kinds = Crawled(), deque(STARTS), Counter[str]()
    seen = {STARTS[0]}
    while due and len(found.pages) < MAX_PAGES:
        address = due.popleft()
        answer = await browser.get(address)
        if answer.status not in (200, *REDIRECTS):
            continue
        path = urlsplit(address).path
        found.pages.add(path)
        if answer.status != 200 or "html" not in answer.headers.get("Content-Type", ""):
            continue
        parser = _LinkParser()
        parser.feed(answer.text)
        for action, form in parser.forms:
            found.forms.setdefault(urlsplit(urljoin(path, action)).path, form)
        found.actions |= set(found.forms)
        # A script may read such an address or post to it.
        targets = {urlsplit(target).path for target in parser.script_targets if target.startswith("/dashboard/")}
        found.actions |= targets
        found.pages |= targets
        for link in parser.links:
            linked = urlsplit(urljoin(path, link))
            is_page = re.match(r"/dashboard(/|$)", linked.path) and not linked.path.startswith((*NOT_CRAWLED, *but))
            kind = UUID.sub("ID", linked.path)
            is_due = linked.path not in seen and kinds[kind] < MAX_OF_KIND
            if is_page and not linked.netloc and is_due:
                seen.add(linked.path)
                kinds[kind] += 1
                due.append(linked.path + (f"?{linked.query}" if linked.query else ""))
    return found
