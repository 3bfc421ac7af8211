"""The documentation of a server: pages of the API, guides, and the index of the search."""

import gzip
import re

import pytest
from quart.typing import TestClientProtocol as Client
from switchboard.apps.docs.guides import FOLDER, Guides, slugify

from tests.fixtures.servers import REPOSITORY

MAX_COMPRESSED = 20_000
"""Bytes of a page; with style sheets, scripts, and pictures, less than 100 kB."""


async def fetch(client: Client, path: str, **headers: str) -> str:
    response = await client.get(path, headers=headers)
    assert response.status_code == 200, path
    return await response.get_data(as_text=True)


def list_links(html: str) -> set[str]:
    return set(re.findall(r'(?:href|src)="(/[^"]*)"', html))


async def test_every_link_of_every_page_leads_somewhere(client: Client) -> None:
    pages: dict[str, str] = {}
    waiting = ["/docs"]
    linked: set[str] = set()
    while waiting:
        path = waiting.pop()
        pages[path] = await fetch(client, path) if not path.endswith(".png") else ""
        for link in list_links(pages[path]):
            linked.add(link)
            target = link.partition("#")[0]
            if target.startswith("/docs") and "/static/" not in target and target not in pages:
                waiting.append(target)
        waiting = list(dict.fromkeys(waiting))
    assert len(pages) > 150
    for picture in (path for path in pages if path.endswith(".png")):
        assert (await client.get(picture)).content_type == "image/png"
    for link in linked:
        page, _, anchor = link.partition("#")
        if anchor and page in pages:
            assert f'id="{anchor}"' in pages[page], link
    for page, html in pages.items():
        ids = re.findall(r' id="([^"]*)"', html)
        assert len(ids) == len(set(ids)), page


async def test_every_field_and_operation_is_on_a_page(client: Client) -> None:
    document = await (await client.get("/openapi.json")).get_json()
    for tag in document["tags"]:
        page = await fetch(client, f"/docs/api/{tag['name']}")
        for path, methods in document["paths"].items():
            for operation in methods.values():
                if tag["name"] in operation["tags"]:
                    assert f'id="{operation["operationId"]}"' in page
                    assert f"<code>{path}</code>" in page
    events = await fetch(client, "/docs/api/events")
    errors = await fetch(client, "/docs/api/errors")
    assert all(f'id="{name}"' in events for name in document["webhooks"])
    assert 'id="insufficient_balance"' in errors


async def test_pages_are_small_compressed_and_revalidated(client: Client) -> None:
    for path in ("/docs", "/docs/api/agents", "/docs/guides/how-to/operating"):
        plain = await fetch(client, path)
        packed = await client.get(path, headers={"Accept-Encoding": "gzip"})
        content = await packed.get_data(as_text=False)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in packed.headers["Vary"]
        assert gzip.decompress(content).decode() == plain
        assert len(content) < MAX_COMPRESSED, f"{path} has {len(content)} bytes"
        again = await client.get(path, headers={"If-None-Match": packed.headers["ETag"]})
        assert again.status_code == 304


async def test_pages_keep_the_theme_and_allow_no_foreign_code(client: Client) -> None:
    response = await client.get("/docs", headers={"Cookie": "theme=dark"})
    assert 'data-theme="dark"' in await response.get_data(as_text=True)
    assert "data-theme=" not in await fetch(client, "/docs", Cookie='theme="><script>')
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_other_paths_are_a_page_that_says_so(client: Client) -> None:
    for path in ("/docs/nothing", "/docs/guides/../../etc/passwd", "/docs/guides/%2e%2e/secret", "/docs/api/guides"):
        response = await client.get(path)
        assert response.status_code == 404
        assert "There is no such page" in await response.get_data(as_text=True)


async def test_the_index_finds_operations_errors_events_and_headings(client: Client) -> None:
    places = await (await client.get("/docs/search.json")).get_json()
    found = {place["address"] for place in places}
    assert {
        "/docs/api/calls#create_call",
        "/docs/api/errors#rate_limited",
        "/docs/api/events#call.completed",
        "/docs/guides/how-to/turn-taking#interruptions",
    } <= found
    assert all(place["title"] and place["page"] for place in places)


def test_guides_are_the_files_of_docs() -> None:
    assert FOLDER.resolve() == REPOSITORY / "docs"
    guides = Guides()
    sections = dict(guides.list_sections())
    assert "/docs/guides/how-to/webhooks" in {guide.address for guide in sections["How-to guides"]}
    assert guides.pages["/docs/guides"].name == "README"


@pytest.mark.parametrize(
    ("name", "link", "address"),
    [
        ("how-to/webhooks", "../api.md#lists", "/docs/guides/api#lists"),
        ("how-to/dashboard", "../screenshots/call.png", "/docs/guides/screenshots/call.png"),
        ("README", "decisions/README.md", "/docs/guides/decisions"),
        ("README", "https://example.com", "https://example.com"),
        ("api", "#errors", "#errors"),
        ("README", "../tenants/README.md", None),
    ],
)
def test_links_of_guides(name: str, link: str, address: str | None) -> None:
    assert Guides().resolve(name, link) == address


def test_anchors_are_those_of_github() -> None:
    assert slugify("What `make run` does, and why") == "what-make-run-does-and-why"
