"""Crawl the dashboard as a browser without scripts: pages, forms, and the addresses that scripts use."""

import re
from collections import deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from tests.attack.http_client import HttpClient

MAX_PAGES = 400
LINKS = ("href", "src")
NOT_CRAWLED = ("/dashboard/static", "/dashboard/sign-in", "/dashboard/client-sdks")


@dataclass(slots=True)
class Crawled:
    """Addresses without queries: pages, and the targets of forms and scripts."""

    pages: set[str] = field(default_factory=set)
    actions: set[str] = field(default_factory=set)


class _LinkParser(HTMLParser):
    """Collects the links and the targets of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[str] = []
        self.script_targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method", "").lower() == "post":
            self.forms.append(given.get("action", ""))
        if "formaction" in given:
            self.forms.append(given["formaction"])
        self.links += [given[name] for name in LINKS if name in given]
        self.script_targets += [value for name, value in given.items() if name.startswith("data-")]


async def crawl_dashboard(browser: HttpClient) -> Crawled:
    """Follow every link from the overview, each path once."""
    found, due = Crawled(), deque(["/dashboard"])
    seen = {"/dashboard"}
    while due and len(found.pages) < MAX_PAGES:
        address = due.popleft()
        answer = await browser.get(address)
        if answer.status != 200:
            continue
        path = urlsplit(address).path
        found.pages.add(path)
        if "html" not in answer.headers.get("Content-Type", ""):
            continue
        parser = _LinkParser()
        parser.feed(answer.text)
        found.actions |= {urlsplit(urljoin(path, form)).path for form in parser.forms}
        # A script may read such an address or post to it.
        targets = {urlsplit(target).path for target in parser.script_targets if target.startswith("/dashboard/")}
        found.actions |= targets
        found.pages |= targets
        for link in parser.links:
            linked = urlsplit(urljoin(path, link))
            is_page = re.match(r"/dashboard(/|$)", linked.path) and not linked.path.startswith(NOT_CRAWLED)
            if is_page and not linked.netloc and linked.path not in seen:
                seen.add(linked.path)
                due.append(linked.path + (f"?{linked.query}" if linked.query else ""))
    return found
