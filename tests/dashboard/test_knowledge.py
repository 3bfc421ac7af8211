"""The pages of knowledge bases and their documents."""

import asyncio
import html
import re
from pathlib import Path

import pytest
from playwright.async_api import Route
from quart.typing import TestClientProtocol as Client
from sqlalchemy import update
from sqlmodel import col
from switchboard.resources.knowledge_bases.formats import MAX_CONTENT_BYTES
from switchboard.resources.knowledge_bases.models import KnowledgeDocument
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.eventually import eventually

HOURS = "# Opening hours\n\nWe are open from seven to six, Monday to Saturday."


@pytest.fixture
async def member(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id, role="builder")


async def create_base(member: Person, name: str = "Bakery") -> str:
    """Create a knowledge base, and return the address of its page."""
    return (await member.post("/dashboard/knowledge/new", {"name": name})).location


async def upload_files(
    member: Person, base: str, files: dict[str, bytes], *, accept: str = "text/html"
) -> tuple[int, str]:
    """Upload files by name, as one field with several files, which the test client's own mapping cannot express."""
    token = re.search(r'name="csrf_token" value="(\w+)"', (await member.get("/dashboard/organizations")).html)
    assert token
    client: Client = member.client
    boundary = "the-end-of-a-part"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token[1]}\r\n'.encode()]
    for name, data in files.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        parts.append(head.encode() + data + b"\r\n")
    body = b"".join(parts) + f"--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Accept": accept}
    response = await client.post(f"{base}/upload", data=body, headers=headers)
    return response.status_code, await response.get_data(as_text=True)


async def test_an_agent_that_is_created_for_a_base_uses_it(member: Person) -> None:
    other, address = await create_base(member, "Other"), await create_base(member)
    base_id, page = address.rpartition("/")[2], (await member.get(address)).html
    for start in ("/dashboard/agents/templates", "/dashboard/agents/new"):
        [link] = set(re.findall(rf'href="({start}\?[^"]*knowledge_base_id={base_id}[^"]*)"', page)[:1])
        page = (await member.get(html.unescape(link))).html
    checked = re.findall(r'name="knowledge_base_ids\[\]" value="([\w-]+)" checked', page)
    assert (checked, other.rpartition("/")[2] in page) == ([base_id], True)


async def test_documents_are_uploaded_pasted_embedded_and_found(window: Window, tmp_path: Path) -> None:
    page = window.page
    await window.open("/dashboard/knowledge")
    await page.get_by_role("link", name="New knowledge base").first.click()
    await page.get_by_label("Name").fill("Bakery")
    await page.get_by_role("button", name="Create").click()
    await page.get_by_text("Bakery was created.").wait_for()
    good, bad = tmp_path / "hours.md", tmp_path / "photo.jpg"
    good.write_text(HOURS)
    bad.write_bytes(b"\xff\xd8")
    await page.get_by_label("Drop files here, or choose files").set_input_files([bad, good])
    await page.get_by_text("photo.jpg has an unsupported file type").wait_for()
    await page.get_by_text("hours.md was added.").wait_for()
    await page.locator(".badge", has_text="ready").wait_for()
    await window.check_accessibility()
    await page.get_by_text("Paste text instead").click()
    await page.get_by_label("Name").fill("Parking")
    await page.get_by_role("textbox", name="Text", exact=True).fill("You can park behind the house.")
    await page.get_by_role("button", name="Add text").click()
    await page.get_by_text("Parking is being processed.").wait_for()
    await page.locator(".badge", has_text="ready").nth(1).wait_for()
    await page.get_by_label("Question").fill("when can I come by")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_text("We are open from seven to six").wait_for()
    assert await page.locator(".passages .row-link").first.text_content() == "hours.md"
    await window.check_accessibility()
    await page.locator(".passages .row-link").first.click()
    await page.get_by_text("Agents can find this document: 1 passage.").wait_for()
    await window.check_accessibility()


async def test_readable_files_are_kept_when_others_are_refused(member: Person) -> None:
    base = await create_base(member)
    status, html = await upload_files(
        member, base, {"hours.md": HOURS.encode(), "menu.pdf": b"no PDF", "old.txt": "Grüße".encode("latin-1")}
    )
    assert status == 422
    assert "menu.pdf" in html
    assert "old.txt is not text in UTF-8; save it as UTF-8." in html
    listed = (await member.get(base)).html
    assert "hours.md" in listed
    assert "menu.pdf" not in listed


async def test_the_same_document_is_added_once(member: Person) -> None:
    base = await create_base(member)
    assert (await upload_files(member, base, {"hours.md": HOURS.encode()}))[0] == 303
    status, html = await upload_files(member, base, {"again.md": HOURS.encode(), "more.md": f"{HOURS} Or so.".encode()})
    assert status == 422
    assert "again.md has the same text as hours.md, which is in this knowledge base." in html
    pasted = await member.post(f"{base}/paste", {"filename": "pasted.md", "content": HOURS})
    assert (pasted.status, "has the same text as hours.md" in pasted.html) == (422, True)
    listed = (await member.get(base)).html
    assert ("again.md" in listed, "pasted.md" in listed, "more.md" in listed) == (False, False, True)


async def test_oversized_files_are_refused_and_a_million_characters_of_text_are_not(member: Person) -> None:
    base = await create_base(member)
    status, message = await upload_files(member, base, {"big.txt": b"a" * (MAX_CONTENT_BYTES + 1)}, accept="text/plain")
    assert (status, message) == (200, "big.txt is larger than 5 MiB.")
    status, _ = await upload_files(member, base, {"huge.txt": b"a" * 9 * 1024 * 1024})
    assert status == 413
    assert (await upload_files(member, base, {}))[0] == 422
    response = await member.post(f"{base}/paste", {"filename": "Long", "content": "A word. " * 125_000})
    assert (response.status, response.location) == (303, base)


async def test_a_refused_text_keeps_the_input(member: Person) -> None:
    base = await create_base(member)
    refused = await member.post(f"{base}/paste", {"filename": "prices.json", "content": "{not <json>"})
    assert refused.status == 422
    assert "is not readable JSON" in refused.html
    assert "{not &lt;json&gt;" in refused.html


async def test_a_failed_document_is_retried(
    member: Person, caller: Caller, runtime: Runtime, running_worker: None
) -> None:
    base = await create_base(member)
    await upload_files(member, base, {"hours.md": HOURS.encode()})
    match = re.search(r"/dashboard/documents/[\w-]+", (await member.get(base)).html)
    assert match
    assert 'href="/dashboard/knowledge" aria-current="page"' in (await member.get(match[0])).html, (
        "one is still among the knowledge"
    )
    document = match[0]
    await wait_for_document_status(member, document, "ready")
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(
            update(KnowledgeDocument)
            .where(col(KnowledgeDocument.status) == "ready")
            .values(status="failed", error_message="No model.")
        )
    assert "No model." in (await member.get(document)).html
    await member.post(f"{document}/retry")
    await wait_for_document_status(member, document, "ready")
    await member.post(f"{document}/retry")
    assert "Only a failed document can be retried" in (await member.get("/dashboard")).html
    assert (await member.get(f"{document}/text")).html.startswith("# Opening hours")


async def wait_for_document_status(member: Person, document: str, status: str) -> None:
    """Wait until a document's page shows a status."""

    async def read_page() -> str:
        return (await member.get(document)).html

    await eventually(read_page, lambda html: f">{status}<" in html)


async def test_a_knowledge_base_is_renamed_and_deleted_with_its_documents(member: Person, caller: Caller) -> None:
    base = await create_base(member)
    await caller.post("/v1/agents", {"name": "Front desk", "knowledge_base_ids": [base.rsplit("/", 1)[1]]})
    assert "Front desk" in (await member.get(base)).html
    assert (await member.post(f"{base}/edit", {"name": ""})).status == 422
    await member.post(f"{base}/edit", {"name": "Pastry shop", "description": "What callers ask."})
    assert "Pastry shop" in (await member.get("/dashboard/knowledge")).html
    await upload_files(member, base, {"hours.md": HOURS.encode()})
    assert (await member.post(f"{base}/delete")).location == "/dashboard/knowledge"
    assert "No knowledge bases yet" in (await member.get("/dashboard/knowledge")).html


async def test_other_organizations_knowledge_is_unreachable(member: Person, stranger: Caller) -> None:
    base = (await stranger.post("/v1/knowledge-bases", {"name": "Theirs"})).json["id"]
    made_document: dict[str, str | list[str]] = {"filename": "a.txt", "content": "A secret recipe."}
    document = (await stranger.post(f"/v1/knowledge-bases/{base}/documents", made_document)).json["id"]
    for path in (f"knowledge/{base}", f"knowledge/{base}/edit", f"knowledge/{base}/documents", f"documents/{document}"):
        assert (await member.get(f"/dashboard/{path}")).status == 404
    for path in (
        f"documents/{document}/status",
        f"documents/{document}/text",
        f"knowledge/search?query=recipe&knowledge_base_id={base}",
    ):
        assert (await member.get(f"/dashboard/{path}")).status == 404
    for path in (
        f"knowledge/{base}/delete",
        f"documents/{document}/delete",
        f"documents/{document}/retry",
        f"documents/{UNKNOWN_ID}/delete",
    ):
        assert (await member.post(f"/dashboard/{path}")).status == 404
    assert (await member.post(f"/dashboard/knowledge/{base}/edit", {"name": "Mine"})).status == 404
    assert (await member.post(f"/dashboard/knowledge/{base}/paste", made_document)).status == 404
    assert (await upload_files(member, f"/dashboard/knowledge/{base}", {"a.txt": b"text"}))[0] == 404
    assert "secret" not in (await member.get("/dashboard/knowledge/search?query=recipe")).html


async def test_files_that_were_chosen_before_the_script_ran_are_uploaded(
    window: Window, live: LivePlatform, tmp_path: Path
) -> None:
    base = (await live.caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"]
    file = tmp_path / "hours.md"
    file.write_text(HOURS)
    chosen = asyncio.Event()

    async def delay(route: Route) -> None:
        await chosen.wait()
        await route.continue_()

    await window.page.route("**/upload.js", delay)
    await window.page.goto(f"/dashboard/knowledge/{base}", wait_until="commit")
    await window.page.locator('input[type="file"]').set_input_files(file)
    chosen.set()
    await window.page.get_by_text("hours.md was added.").wait_for()
