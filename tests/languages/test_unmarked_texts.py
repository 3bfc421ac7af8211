"""No page shows a text that cannot be translated: in a pseudo-language, every word that is not data is in brackets."""

import re
from collections import deque
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser
from switchboard.foundation import languages

from tests.dashboard.test_every_page import FEWEST, FIND_LINKS, ID, create_rows, is_page
from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import open_owner_window
from tests.languages.pseudo import CLOSE, OPEN, build_pseudo_catalog

pytestmark = pytest.mark.system
READ_TEXTS = """() => {
  const found = [], nodes = [];
  // Zones, countries, and languages have names of their own, and choices of settings are those of tenant files.
  const named = ["timezone", "country", "language"].map((name) => `select[name$="${name}"] *`);
  const chosen = ["settings", "policy"].map((name) => `select[name^="${name}."] *`);
  const other = ["code", "pre", "time", "kbd", "script", "style", "datalist *", "[data-untranslated]", ".brand"];
  const skipped = [...named, ...chosen, ...other].join();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    // A message with markup inside begins in one text and ends in another, so that brackets count across all of them.
    if (node.parentElement.closest("script, style")) continue;
    nodes.push([node.textContent, node.parentElement.closest(skipped) !== null]);
  }
  for (const name of ["aria-label", "title", "placeholder", "alt"]) {
    for (const element of document.querySelectorAll(`[${name}]`)) found.push(element.getAttribute(name).trim());
  }
  let depth = 0;
  for (const [text, isSkipped] of nodes) {
    let rest = "";
    for (const letter of text) {
      if (letter === "⟦") depth += 1;
      if (depth === 0) rest += letter;
      if (letter === "⟧") depth -= 1;
    }
    if (!isSkipped) found.push(rest.trim());
  }
  return found;
}"""
BRACKETED = re.compile(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
WORDS = re.compile(r"[A-Za-z]{3,} [a-z]{2,}|^[A-Za-z][a-z-]{3,}$")
OF_PLUGINS = "/dashboard/console/plugins"
"""The page with the names of plugins, and of what they provide."""
OF_ROWS = re.compile(r'When the caller says .*|\{"question": "May we .*|Test [0-9a-f]{8}')
"""The demo agent's prompt, an example of words in the agent's language, and the organization's name."""
DATA = {
    *("espeak", "lancedb", "loopback", "minilm", "pocketsphinx", "scripted"),
    *("alloy", "common", "global", "telephony"),
    "customer",
    "test",
    "Agent",
    "Are you open <now>?",
    "Asked us",
    "Front desk",
    "Greets",
    "Hello",
    "Hello , this is the bakery on the corner.",
    "Hello! How can I help you?",
    "Hello {{customer}}, this is the bakery on the corner.",
    "House rules",
    "Likes cake",
    "Spring",
    "Visit",
    "When were you born?",
    "The agent said: Hello , this is the bakery on the corner.",
    "Chrome on Linux",
    "open from * to six",
}
"""Names of providers, default settings, texts of the rows, and examples of words in the agent's language."""


@pytest.mark.timeout(900)
async def test_every_text_of_every_page_is_a_message(
    browser: Browser, live: LivePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    pseudo = build_pseudo_catalog()
    await create_rows(live)
    async with open_owner_window(browser, live, superadmin=True) as window:
        monkeypatch.setattr(languages, "load_catalog", lambda language: pseudo)
        seen, due = {"/dashboard"}, deque(["/dashboard"])
        unmarked: dict[str, set[str]] = {}
        while due:
            path = due.popleft()
            await window.open(path)
            for text in await window.page.evaluate(READ_TEXTS):
                rest = " ".join(BRACKETED.sub("", BRACKETED.sub("", text)).split())
                is_data = rest in DATA or OF_ROWS.fullmatch(rest) or path.startswith(OF_PLUGINS)
                if WORDS.search(rest) and not is_data:
                    unmarked.setdefault(rest, set()).add(ID.sub("ID", path.partition("?")[0]))
            for link in await window.page.eval_on_selector_all("a[href]", FIND_LINKS):
                address = urlsplit(link)
                place = address.path + (f"?{address.query}" if address.query else "")
                kind = ID.sub("ID", address.path)
                if is_page(address.path) and kind not in seen:
                    seen.add(kind)
                    due.append(place)
        assert not unmarked, "\n".join(f"{text!r}: {sorted(places)[:3]}" for text, places in unmarked.items())
        assert len(seen) >= FEWEST
