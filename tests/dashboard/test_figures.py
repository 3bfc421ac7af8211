"""Overview, usage, and audit log show the stored data."""

from datetime import timedelta

from sqlmodel import col, select
from switchboard.foundation.database import now
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People, Window


async def test_the_overview_without_calls_is_empty(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    assert "No calls yet" in (await owner.get("/dashboard")).html


async def test_the_overview_covers_the_period_and_only_own_calls(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    for status in ("completed", "completed", "busy"):
        await add_call(runtime, caller, now(), status=status, direction="outbound")
    await add_call(runtime, caller, now() - timedelta(days=20), status="completed")
    await add_call(runtime, stranger, now(), status="completed")
    async with runtime.database.write(caller.organization_id) as session:
        for call in (await session.exec(select(Call).order_by(col(Call.created_at).desc()).limit(1))).all():
            steps = {
                "endpoint_ms": 200,
                "transcript_ms": 240,
                "first_token_ms": 300,
                "first_audio_ms": 400,
                "first_frame_ms": 410,
            }
            call.latencies = [{"turn": 1, **steps}, {"turn": 2, **steps, "first_audio_ms": None, "first_frame_ms": 512}]
    week = (await owner.get("/dashboard?days=7")).html
    month = (await owner.get("/dashboard?days=30")).html
    assert "<dd>3<small>0 in, 3 out" in week
    assert "<dd>4<small>" in month
    assert "461 ms" in week, "the median of 410 and 512"
    assert (await owner.get("/dashboard?days=soon")).status == 422


async def test_the_usage_page_shows_charges(live: LivePlatform, people: People) -> None:
    owner = await people.join(live.caller.organization_id)
    page = (await owner.get("/dashboard/usage")).html
    assert "Usage and billing" in page
    assert "number" in page, "the number's rent"


async def test_the_audit_log_names_actor_and_action(people: People, caller: Caller, stranger: Caller) -> None:
    owner = await people.join(caller.organization_id)
    await caller.post("/v1/contacts", {"phone_number": "+15550100001"})
    await stranger.post("/v1/contacts", {"phone_number": "+15550100002"})
    await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100003", "name": "Never shown"})
    await owner.get("/dashboard/contacts")
    page = (await owner.get("/dashboard/audit")).html
    assert owner.email in page
    assert "key test" in page
    assert page.count(">Contact created<") == 2
    assert "Never shown" not in page
    html = (await owner.get(f"/dashboard/audit?actor=user:{owner.user_id}")).html
    assert html.count(">Contact created<") == 1


async def test_statistics_pages_work_in_a_browser(window: Window, live: LivePlatform) -> None:
    await live.simulate_call("what are your opening hours", "goodbye")
    for path in ("/dashboard", "/dashboard/usage", "/dashboard/audit", "/dashboard/organizations"):
        await window.open(path)
        await window.check_accessibility()
    await window.page.set_viewport_size({"width": 390, "height": 844})
    await window.open("/dashboard")
    wide = await window.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390, "nothing sticks out on a telephone"
    await window.page.get_by_role("button", name="Menu").click()
    await window.page.get_by_role("link", name="Contacts").click()
    await window.page.get_by_role("heading", name="Contacts", exact=True).wait_for()
