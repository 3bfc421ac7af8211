"""Parts of pages that the server keeps current: one stream for all tabs, as long as the user has access."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from playwright.async_api import Page, expect
from sqlmodel import col, update
from switchboard.apps.dashboard.pages.live_parts import FollowedPart, LivePartStreamer
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.resources.identity.models import User

from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.dashboard import PASSWORD, People, Person, Window, create_person
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone

STREAM = "/dashboard/live-parts"
INBOX, CALLS = "/dashboard/texts/live", "/dashboard/live/calls"
CONSOLE = "/dashboard/console/live"
TABS = 10


@asynccontextmanager
async def sign_in_client(live: LivePlatform, person: Person) -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(live.runtime.settings.base_url, cookie_jar=jar) as browser:
        async with browser.post("/dashboard/sign-in", data={"email": person.email, "password": PASSWORD}) as signed_in:
            assert signed_in.status == 200
        yield browser


async def test_a_live_part_ends_with_the_membership(live: LivePlatform, people: People) -> None:
    owner = await people.join(live.caller.organization_id)
    member = await create_person(live.runtime, live.caller.client, live.caller.organization_id, role="builder")
    async with sign_in_client(live, member) as browser, browser.get(STREAM, params={"part": INBOX}) as stream:
        assert (await stream.content.readline()).startswith(b"data:")
        assert (await owner.post(f"/dashboard/team/{member.user_id}/remove")).status == 303
        async with asyncio.timeout(60):
            assert b"event: over" in await stream.content.read()


async def test_a_stream_has_each_part_once(live: LivePlatform) -> None:
    person = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    parts = [("part", address) for address in (INBOX, CALLS, INBOX)]
    async with sign_in_client(live, person) as browser, browser.get(STREAM, params=parts) as stream:
        assert stream.content_type == "text/event-stream"
        lines = [await stream.content.readline() for _ in range(4)]
    assert sum(INBOX.encode() in line for line in lines) == sum(CALLS.encode() in line for line in lines) == 1


@dataclass(frozen=True, slots=True)
class PartEvent:
    """An event of a stream: the part's HTML, None if the part can no longer be followed."""

    part: str
    html: str | None
    is_final: bool

    def shows(self, text: str) -> bool:
        return self.html is not None and text in self.html


async def read_event(stream: aiohttp.ClientResponse) -> PartEvent:
    """Return the next event of a stream."""
    async with asyncio.timeout(60):
        while not (line := await stream.content.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
    return PartEvent(**json.loads(line.removeprefix(b"data: ")))


async def test_the_console_is_streamed_to_a_superadmin_without_an_organization(live: LivePlatform) -> None:
    operator = await create_person(live.runtime, live.caller.client, None, superadmin=True)
    parts = [("part", address) for address in (CONSOLE, CALLS)]
    async with sign_in_client(live, operator) as browser, browser.get(STREAM, params=parts) as stream:
        console, calls = await read_event(stream), await read_event(stream)
        assert (console.part, console.is_final, console.shows("Webhook deliveries")) == (CONSOLE, False, True)
        assert (calls.part, calls.is_final, calls.shows("This was deleted.")) == (CALLS, True, True)
        await Organizations(live.runtime, live.caller.client).create()
        assert (await read_event(stream)).part == CONSOLE


async def test_the_console_is_streamed_to_nobody_else(live: LivePlatform) -> None:
    owner = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    async with sign_in_client(live, owner) as browser, browser.get(STREAM, params={"part": CONSOLE}) as stream:
        event = await read_event(stream)
        assert (event.is_final, event.shows("Webhook deliveries")) == (True, False)
        async with asyncio.timeout(60):
            assert b"event: over" in await stream.content.read()


async def test_a_superadmin_who_leaves_an_organization_keeps_the_console_and_loses_its_parts(
    live: LivePlatform, people: People
) -> None:
    owner = await people.join(live.caller.organization_id)
    operator = await create_person(live.runtime, live.caller.client, live.caller.organization_id, superadmin=True)
    parts = [("part", address) for address in (CONSOLE, INBOX)]
    async with sign_in_client(live, operator) as browser, browser.get(STREAM, params=parts) as stream:
        assert {(await read_event(stream)).part for _ in parts} == {CONSOLE, INBOX}
        assert (await owner.post(f"/dashboard/team/{operator.user_id}/remove")).status == 303
        ended = await read_event(stream)
        while ended.part == CONSOLE:
            ended = await read_event(stream)
        assert (ended.html, ended.is_final) == (None, True)
        async with live.runtime.database.system() as session:
            await session.exec(update(User).where(col(User.id) == operator.user_id).values(is_superadmin=False))
        event = await read_event(stream)
        while not event.is_final:
            event = await read_event(stream)
        assert (event.part, event.shows("Webhook deliveries")) == (CONSOLE, False)


async def test_the_parts_of_an_organization_end_with_its_suspension(live: LivePlatform, people: People) -> None:
    operator = await people.join(None, superadmin=True)
    member = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    async with sign_in_client(live, member) as browser, browser.get(STREAM, params={"part": INBOX}) as stream:
        assert not (await read_event(stream)).is_final
        organization = f"/dashboard/console/organizations/{live.caller.organization_id}"
        assert (await operator.post(f"{organization}/suspend", {"reason": "unpaid"})).status == 303
        assert (await read_event(stream)).is_final


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([], 422),
        ([f"{INBOX}?offset={offset}" for offset in range(51)], 422),
        (["/dashboard/team"], 404),
        (["/dashboard/nowhere"], 404),
        (["https://example.com/dashboard/live/nothing"], 404),
        (["//[half"], 404),
    ],
)
async def test_only_live_parts_are_streamed(live: LivePlatform, people: People, parts: list[str], status: int) -> None:
    owner = await people.join(live.caller.organization_id)
    query = "&".join(f"part={part.replace('?', '%3F').replace('[', '%5B')}" for part in parts)
    assert (await owner.get(f"{STREAM}?{query}")).status == status


async def test_ten_tabs_stay_current_by_one_stream(
    live: LivePlatform, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser opens six connections to a host over HTTP/1.1."""
    opened = list[set[str]]()
    stream_parts = LivePartStreamer.stream_parts

    def count_stream(
        streamer: LivePartStreamer, viewer: Viewer, parts: Sequence[FollowedPart]
    ) -> AsyncGenerator[bytes, None]:
        """Browsers' own tools do not report the requests of a shared worker."""
        opened.append({part.address for part in parts})
        return stream_parts(streamer, viewer, parts)

    monkeypatch.setattr(LivePartStreamer, "stream_parts", count_stream)
    tabs = [window.page, *[await window.page.context.new_page() for _ in range(TABS - 1)]]
    for tab in tabs:
        await tab.goto(f"{live.runtime.settings.base_url}/dashboard/live")
        await expect(tab.get_by_text("No live calls")).to_be_visible()
    async with connect_telephone(live):
        for tab in tabs:
            await expect(tab.get_by_role("link", name="Listen to")).to_be_visible()
        await tabs[3].goto(f"{live.runtime.settings.base_url}/dashboard/texts")
        await tabs[4].close()
    for tab in (*tabs[:3], *tabs[5:]):
        await expect(tab.get_by_text("No live calls")).to_be_visible()
    assert opened[0] == {CALLS}, "one for ten tabs"
    assert {CALLS} < opened[1], "opened again, with the inbox"
    assert len(opened) == 2


async def test_a_browser_without_shared_workers_asks_again(live: LivePlatform, window: Window) -> None:
    await window.page.add_init_script("delete window.SharedWorker")
    await window.open("/dashboard/live")
    asked = list[str]()
    window.page.on("request", lambda request: asked.append(request.url))
    async with connect_telephone(live):
        await expect(window.page.get_by_role("link", name="Listen to")).to_be_visible()
    await expect(window.page.get_by_text("No live calls")).to_be_visible()
    assert not any(STREAM in url for url in asked)


async def test_a_hidden_tab_is_not_kept_current(live: LivePlatform, window: Window) -> None:
    await window.page.add_init_script("delete window.SharedWorker")
    await window.page.clock.install()
    await window.open("/dashboard/live")
    await expect(window.page.get_by_text("No live calls")).to_be_visible()
    await set_visibility(window.page, "hidden")
    asked = list[str]()
    window.page.on("request", lambda request: asked.append(request.url))
    async with connect_telephone(live):
        await eventually(lambda: is_listed(live))
        await window.page.clock.run_for(60_000)
        assert asked == []
        await set_visibility(window.page, "visible")
        await expect(window.page.get_by_role("link", name="Listen to")).to_be_visible()


async def is_listed(live: LivePlatform) -> bool:
    return bool((await live.caller.get("/v1/calls?status=in-progress")).json["items"])


async def set_visibility(page: Page, state: str) -> None:
    """Hide or show the page, as the browser does when another tab is selected."""
    await page.evaluate(
        "state => { Object.defineProperty(document, 'hidden', {value: state === 'hidden', configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )
