"""The call queue in Chromium: waiting callers, callbacks, and notifications."""

from pathlib import Path
from uuid import UUID

import pytest
from playwright.async_api import Page, expect
from switchboard.foundation.database import now
from switchboard.resources.calls import call_queue
from switchboard.resources.calls.models import CallQueueEntry
from switchboard.resources.calls.queries import is_staffed, list_queue_entries
from switchboard.runtime import Runtime

from tests.dashboard.test_live_calls import write_microphone_file
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People, launch_browser, open_owner_window
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone

PROMPT = (
    "You answer the phone of a bakery.\n"
    'When the caller says "opening hours": say "One moment." and call ask_for_person(reason="Asks for a baker")'
)
RECORD_NOTIFICATIONS = (
    "window.notices = []; window.Notification = class { static permission = 'granted';"
    " static async requestPermission() { return 'granted'; }"
    " constructor(title, options) { window.notices.push([title, options.tag]); } }"
)


async def let_agent_ask_for_person(live: LivePlatform) -> None:
    fields = {"system_prompt": PROMPT, "queue_wait_seconds": 120, "greeting_message": "Hello!"}
    assert (await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", fields)).status == 200


async def list_entries(live: LivePlatform) -> list[tuple[str, bool]]:
    """Return the status of each entry, and whether a user has handled it."""
    async with live.runtime.database.write(live.caller.organization_id) as session:
        entries = (await session.exec(session.select(CallQueueEntry))).all()
        return sorted((entry.status, entry.handled_by is not None) for entry in entries)


async def add_callback(live: LivePlatform, number: str) -> None:
    """Add a caller who has asked for a callback."""
    call = await add_call(live.runtime, live.caller, now(), agent_id=UUID(live.agent_id), from_number=number)
    async with live.runtime.database.write(live.caller.organization_id) as session:
        await call_queue.join_queue(session, call.id, number, "Asks for a baker")
        await session.flush()
        assert await call_queue.leave_queue(session, call.id, callback=True)


@pytest.mark.real_time
async def test_a_waiting_caller_is_answered_in_the_browser(live: LivePlatform, tmp_path: Path) -> None:
    await let_agent_ask_for_person(live)
    microphone = write_microphone_file(tmp_path / "person.wav", "Good afternoon.")
    async with (
        launch_browser(microphone=microphone) as browser,
        open_owner_window(browser, live) as window,
    ):
        page = window.page
        await window.open("/dashboard/call-queue")
        await page.get_by_text("Nobody waits").wait_for()
        async with connect_telephone(live) as caller:
            await caller.phone.wait_for_voice(5)
            await caller.phone.wait(1)
            await caller.say("What are your opening hours?")
            await page.get_by_text("Asks for a baker").wait_for()
            await window.check_accessibility()
            await page.get_by_role("link", name="Answer").click()
            await expect(page.locator("[data-state]")).to_have_text("You have the call.")
            await eventually(lambda: list_entries(live), lambda entries: entries == [("answered", True)])
            await caller.hang_up()
        await page.wait_for_url("**/dashboard/calls/*")
        await page.locator(".said.system").filter(has_text="The caller waits for a person.").wait_for()


async def test_a_caller_who_hangs_up_waits_no_more(live: LivePlatform, people: People) -> None:
    await let_agent_ask_for_person(live)
    agent = await people.join(live.caller.organization_id, role="agent")
    await agent.get("/dashboard/call-queue/attention")
    async with connect_telephone(live) as caller:
        await caller.phone.wait_for_voice(5)
        await caller.phone.wait(1)
        await caller.say("What are your opening hours?")
        await eventually(lambda: list_entries(live), lambda entries: entries == [("waiting", False)])
        assert "Asks for a baker" in (await agent.get("/dashboard/call-queue/entries")).html
    await eventually(lambda: list_entries(live), lambda entries: entries == [("abandoned", False)])


@pytest.mark.real_time
async def test_a_callback_connects_the_user_with_the_other_party(live: LivePlatform, tmp_path: Path) -> None:
    await add_callback(live, "+15550100001")
    microphone = write_microphone_file(tmp_path / "person.wav", "Good afternoon.")
    async with (
        launch_browser(microphone=microphone) as browser,
        open_owner_window(browser, live) as window,
    ):
        page = window.page
        await window.open("/dashboard/call-queue")
        await window.check_accessibility()
        await page.get_by_role("button", name="Call back").click()
        await expect(page.locator("[data-state]")).to_have_text("You have the call.", timeout=20_000)
        expected = [("answered", True), ("called_back", True)]
        await eventually(lambda: list_entries(live), lambda entries: entries == expected)


async def test_a_callback_that_nobody_answers_is_due_again(live: LivePlatform, people: People) -> None:
    await add_callback(live, "+15550100020")
    agent = await people.join(live.caller.organization_id, role="agent")
    async with live.runtime.database.write(live.caller.organization_id) as session:
        (entry,) = await list_queue_entries(session, "callback")
    assert (await agent.post(f"/dashboard/call-queue/callbacks/{entry.id}")).status == 303
    assert (await agent.post(f"/dashboard/call-queue/callbacks/{entry.id}")).status == 303, "with a notice"
    await eventually(lambda: list_entries(live), lambda entries: entries == [("abandoned", False), ("callback", False)])


async def test_the_longest_wait_is_first(people: People, caller: Caller, runtime: Runtime) -> None:
    agent = await people.join(caller.organization_id, role="agent")
    for reason in ("First.", "Second."):
        call = await add_call(runtime, caller, now(), status="in-progress", ended_at=None)
        async with runtime.database.write(caller.organization_id) as session:
            await call_queue.join_queue(session, call.id, "+15550100001", reason)
    async with runtime.database.read(caller.organization_id) as session:
        assert await call_queue.get_position(session, call.id) == 2
        assert not await is_staffed(session)
    html = (await agent.get("/dashboard/call-queue")).html
    assert html.index("First.") < html.index("Second.")
    assert (await agent.get("/dashboard/call-queue/attention")).status == 200
    async with runtime.database.write(caller.organization_id) as session:
        assert await is_staffed(session)


async def test_nobody_is_known_to_be_there_during_an_outage(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await add_call(runtime, caller, now(), status="in-progress", ended_at=None)
    queue = call_queue.DatabasePersonQueue(runtime.database, call)

    def fail(*_: object) -> None:
        raise OSError("the database is down")

    monkeypatch.setattr(type(runtime.database), "read", fail)
    assert not await queue.is_staffed()
    assert await queue.get_position() == 1


async def read_notices(page: Page) -> list[list[str]]:
    return await page.evaluate("window.notices")  # type: ignore[no-any-return]


async def test_one_tab_notifies_of_each_caller_once(live: LivePlatform) -> None:
    async with launch_browser() as browser, open_owner_window(browser, live) as window:
        page = window.page
        await page.context.add_init_script(RECORD_NOTIFICATIONS)
        await window.open("/dashboard/call-queue")
        assert await read_notices(page) == []
        await page.get_by_role("button", name="Notify me").click()
        await page.get_by_role("button", name="Notifications are on").wait_for()
        other = await page.context.new_page()
        await other.goto(f"{live.runtime.settings.base_url}/dashboard/contacts")
        call = await add_call(live.runtime, live.caller, now(), status="in-progress", ended_at=None)
        async with live.runtime.database.write(live.caller.organization_id) as session:
            await call_queue.join_queue(session, call.id, "+15550100001", "Asks for a baker")
        await eventually(
            lambda: read_notices(page), lambda found: found == [["A caller waits for a person", "switchboard-calls"]]
        )
        assert await read_notices(other) == []
        await page.close()
        await other.locator("[data-attention] [data-calls]").wait_for(state="attached")
        assert await read_notices(other) == [], "the next tab does not repeat it"
