"""The pages of calls."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

from playwright.async_api import expect
from switchboard.foundation.database import now
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.calls import add_call, add_line, write_recording
from tests.fixtures.dashboard import People, Window
from tests.fixtures.json_access import objects_at


async def create_spoken_call(runtime: Runtime, caller: Caller, **fields: object) -> Call:
    """Create a call with a tool call, and with a recording of one second of each party."""
    call = await add_call(runtime, caller, now(), has_recording=True, ended_at=now(), duration_seconds=2, **fields)
    write_recording(runtime, call, caller=1.0, agent=1.0)
    lines = (
        ("user", "Are you open <now>?", 100, 900),
        ("tool", '{"tool": "look_up", "result": {"open": true}}', 950, 950),
        ("agent", "We are.", 1000, 1900),
    )
    async with runtime.database.write(caller.organization_id) as session:
        for position, (role, content, begins, ends) in enumerate(lines):
            await add_line(session, call.id, content, position=position, role=role, timestamp_ms=begins, ended_ms=ends)
    return call


async def test_a_call_links_to_the_version_that_it_ran_with(people: People, live: LivePlatform) -> None:
    call = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"greeting_message": "Changed"})
    assert call["agent_version"] == 1
    owner = await people.join(live.caller.organization_id)
    link = f'href="/dashboard/agents/{live.agent_id}/versions/1"'
    assert link in (await owner.get(f"/dashboard/calls/{call['id']}")).html


async def test_a_placed_call_and_its_recording_can_be_played(window: Window, live: LivePlatform) -> None:
    page = window.page
    await window.open("/dashboard/calls")
    await page.get_by_role("link", name="Place a call").click()
    # This callee hangs up a second into the agent's speech.
    await page.get_by_label("Number to call").fill("+15550100040")
    await window.check_accessibility()
    await page.get_by_role("button", name="Call", exact=True).click()
    await page.get_by_text("Hello , this is").or_(page.get_by_text("Hello")).first.wait_for()
    slider = page.get_by_role("slider", name="Position in the recording")
    await slider.wait_for()
    await page.get_by_text("The other party hung up").wait_for()
    await slider.press("End")
    await slider.press("Home")
    await expect(slider).to_have_attribute("aria-valuenow", "0")
    assert await page.locator(".said[aria-current=true]").count() == 0
    await page.locator(".said.agent").first.click()
    await page.locator(".said.agent[aria-current=true]").wait_for()
    await expect(page.locator("[data-played]")).to_have_attribute("width", re.compile(r"^([6-9]|\d\d)"))
    await window.check_accessibility()
    await window.open("/dashboard/calls")
    await page.get_by_label("Direction").select_option("inbound")
    await page.get_by_text("No matching calls").wait_for()
    await page.get_by_label("Direction").select_option("outbound")
    await page.get_by_role("link", name="+1 555-010-0040").wait_for()
    await window.check_accessibility()


async def test_a_call_shows_its_consent(people: People, caller: Caller, runtime: Runtime) -> None:
    consent = {
        "rules": ["agent: preset us-ca of 2026-11-22"],
        "place": "US-CA",
        "mode": "ask",
        "notice": "May we <record> this call?",
        "asked_at": "2026-11-22T09:30:00+00:00",
        "asked_ms": 100,
        "answer": True,
        "by": "keypad",
        "heard": "1",
        "answered_at": "2026-11-22T09:30:05+00:00",
        "answered_ms": 5100,
        "recording_offset_ms": 5100,
    }
    call = await create_spoken_call(runtime, caller, consent=consent)
    page = (await (await people.join(caller.organization_id)).get(f"/dashboard/calls/{call.id}")).html
    for shown in ("consent given", "Key pressed: 1", "May we &lt;record&gt; this call?", "5.1 s", "preset us-ca of"):
        assert shown in page, shown


async def test_a_call_marks_each_pause_with_its_judgment(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await create_spoken_call(runtime, caller)
    judged = (
        (2000, 700, False, "words", 0.05),
        (4000, 600, False, "smart_turn", 0.31),
        (6000, 2000, True, "smart_turn", 0.12),
        (7000, 230, True, "smart_turn", 0.9),
        (8000, 200, True, "silence", None),
        (9000, 200, True, None, None),
    )
    names = ("after_ms", "waited_ms", "ended_turn", "detector", "probability")
    async with runtime.database.write(caller.organization_id) as session:
        lines = [("user", [dict(zip(names, pause, strict=True)) for pause in judged], False), ("user", [], True)]
        for position, (role, pauses, backchannel) in enumerate(lines, start=3):
            times = {"timestamp_ms": 3000, "ended_ms": 12000}
            judgment = {"backchannel": backchannel, "pauses": pauses}
            await add_line(session, call.id, "A table for four", position=position, role=role, **times, **judgment)
    entries: Any = (await caller.get(f"/v1/calls/{call.id}/transcript")).json["items"]
    assert entries[3]["pauses"][0] == dict(zip(names, judged[0], strict=True))
    assert [entry["backchannel"] for entry in entries] == [False, False, False, False, True]
    html = (await (await people.join(caller.organization_id)).get(f"/dashboard/calls/{call.id}")).html
    shown = re.findall(r'"pause-at">(.*?)</li>', html)
    assert [re.sub("<[^>]*>", "", pause) for pause in shown] == [
        "0:05 Went on after 0.7 s (the words: 5% likely complete)",
        "0:07 Went on after 0.6 s (smart_turn: 31% likely complete)",
        "0:09 Turn over after 2.0 s, the longest wait (smart_turn: 12% likely complete)",
        "0:10 Turn over after 0.2 s (smart_turn: 90% likely complete)",
        "0:11 Turn over after 0.2 s (silence decides)",
        "0:12 Turn over after 0.2 s (the words left doubt, and no turn detector answered)",
    ]
    assert "while the agent spoke" in html


async def test_a_call_shows_its_transcript_analysis_and_cost(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await create_spoken_call(
        runtime,
        caller,
        call_summary="They asked for the hours.",
        call_successful=True,
        user_sentiment="positive",
        extracted_data={"wants": "bread"},
        call_metadata={"customer": "Ada"},
        variables={"plan": {"value": "gold", "origin": "tool", "agent_id": None, "timestamp_ms": 0}},
        cost_parts={"carriage": 0.01},
        ended_reason="caller_hung_up",
        error_message="Half a failure.",
        served_by={"llm": "scripted"},
        latencies=[{"turn": 1, "endpoint_ms": 300, "transcript_ms": 350, "first_frame_ms": 700}],
    )
    owner = await people.join(caller.organization_id)
    html = (await owner.get(f"/dashboard/calls/{call.id}")).html
    for fragment in (
        "They asked for the hours.",
        "positive",
        "successful",
        "bread",
        "Ada",
        'gold <span class="hint">from a tool</span>',
        "$0.0100",
        "The other party hung up",
        "Half a failure.",
        "scripted",
        "700 ms",
        "First audio",
        "Are you open &lt;now&gt;?",
        "Used <code>look_up</code>",
        "&#34;open&#34;: true",
        "data-player",
    ):
        assert fragment in html, fragment
    assert "data-live" not in html


async def test_the_page_of_an_ended_call_waits_for_its_recording(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    call = await add_call(runtime, caller, now(), ended_at=now(), status="completed", recording_due_at=now())
    owner = await people.join(caller.organization_id)
    html = (await owner.get(f"/dashboard/calls/{call.id}")).html
    assert "The recording is being stored." in html
    assert f'data-live="/dashboard/calls/{call.id}/talk"' in html


async def test_the_live_parts_of_an_ended_call_show_the_last_words_and_are_final(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    call = await create_spoken_call(runtime, caller)
    owner = await people.join(caller.organization_id)
    talk = await owner.get(f"/dashboard/calls/{call.id}/talk")
    assert talk.headers["Live-Part-Final"] == "1"
    assert "We are." in talk.html
    assert "Reason for ending" not in (await owner.get(f"/dashboard/calls/{call.id}/about")).html


async def test_the_waveform_shows_the_caller_above_the_agent(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await create_spoken_call(runtime, caller)
    owner = await people.join(caller.organization_id)
    html = (await owner.get(f"/dashboard/calls/{call.id}/waveform")).html
    above, below = (re.search(rf'class="{side}" d="([^"]+)"', html) for side in ("caller", "agent"))
    assert above
    assert below
    up = [float(height) for height in re.findall(r"v(-?[\d.]+)h-", above[1])]
    down = [float(height) for height in re.findall(r"v(-?[\d.]+)h-", below[1])]
    half = len(up) // 2
    assert max(up[: half - 1]) < -40
    assert min(up[half + 1 :]) == -1.0
    assert max(down[: half - 1]) == 1.0
    assert min(down[half + 1 :]) > 40
    assert 'data-seconds="2.0"' in html


async def test_recordings_support_range_requests(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await create_spoken_call(runtime, caller)
    owner = await people.join(caller.organization_id)
    owner.headers["Range"] = "bytes=0-99"
    part = await owner.get(f"/dashboard/calls/{call.id}/recording")
    assert (part.status, part.headers["Content-Range"]) == (206, f"bytes 0-99/{44 + 2 * 8000 * 4}")


async def test_a_call_without_a_recording_has_no_player(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await add_call(runtime, caller, now(), ended_at=now())
    owner = await people.join(caller.organization_id)
    html = (await owner.get(f"/dashboard/calls/{call.id}")).html
    assert "data-player" not in html
    assert "Nothing was said." in html
    assert (await owner.get(f"/dashboard/calls/{call.id}/waveform")).status == 404


async def test_a_contact_is_called_and_texted_from_its_row(people: People, live: LivePlatform) -> None:
    contact = (await live.caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada"})).json
    owner = await people.join(live.caller.organization_id)
    html = (await owner.get(f"/dashboard/contacts/{contact['id']}")).html
    for address in ("/dashboard/calls/new?to_number=%2B15550100001", "/dashboard/texts/new?to_number=%2B15550100001"):
        assert f'href="{address}"' in html
        assert 'value="+15550100001"' in (await owner.get(address)).html


async def test_a_refused_call_keeps_the_input(people: People, live: LivePlatform) -> None:
    owner = await people.join(live.caller.organization_id)
    refused = await owner.post(
        "/dashboard/calls/new", {"to_number": "555", "agent_id": live.agent_id, "from_number_id": live.number_id}
    )
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    assert 'value="555"' in refused.html


async def test_other_organizations_calls_are_not_visible(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    foreign_call = await create_spoken_call(runtime, stranger)
    owner = await people.join(caller.organization_id)
    for call_id in (foreign_call.id, UNKNOWN_ID):
        for part in ("", "/talk", "/about", "/recording", "/waveform"):
            assert (await owner.get(f"/dashboard/calls/{call_id}{part}")).status == 404, part
    assert str(foreign_call.id) not in (await owner.get("/dashboard/calls")).html


async def test_calls_with_a_number_are_found_in_both_directions(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    moment = now()
    one = await add_call(
        runtime, caller, moment, direction="inbound", from_number="+15550100001", to_number="+15550100200"
    )
    other = await add_call(
        runtime, caller, moment, direction="outbound", from_number="+15550100200", to_number="+15550100001"
    )
    third = await add_call(
        runtime, caller, moment, direction="outbound", from_number="+15550100200", to_number="+15550100002"
    )
    owner = await people.join(caller.organization_id)
    page = (await owner.get("/dashboard/calls?phone=%2B1 (555) 010-0001".replace(" ", "%20"))).html
    assert [str(call.id) in page for call in (one, other, third)] == [True, True, False]
    outbound = (await owner.get("/dashboard/calls?phone=%2B15550100001&direction=outbound")).html
    assert [str(call.id) in outbound for call in (one, other, third)] == [False, True, False]
    assert "No matching calls" in (await owner.get("/dashboard/calls?phone=nobody")).html


async def test_days_and_other_filters_find_calls_and_are_saved_as_a_view(
    people: People, runtime: Runtime, caller: Caller, stranger: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).timezone = "Asia/Tokyo"
    early = datetime(2026, 11, 16, 14, 59, tzinfo=UTC)  # 23:59 in Tokyo
    await add_call(runtime, caller, early, from_number="+15550100041", user_sentiment="negative")
    await add_call(runtime, caller, early + timedelta(minutes=1), from_number="+15550100042")
    query = "first_day=2026-11-16&last_day=2026-11-16"
    page = (await owner.get(f"/dashboard/calls?{query}&ended_reason=")).html
    assert "555-010-0041" in page
    assert "555-010-0042" not in page
    assert "555-010-0041" in (await owner.get("/dashboard/calls?user_sentiment=negative&min_duration_seconds=0")).html
    saved = await owner.post("/dashboard/calls/views", {"name": "A Monday", "query": f"{query}&offset=50"})
    assert saved.location == f"/dashboard/calls?{query}"
    page = (await owner.get(saved.location)).html
    assert "A Monday" in page
    assert (await owner.post("/dashboard/calls/views", {"name": "A bad view", "query": "status=odd"})).status == 303
    assert "A bad view" not in (await owner.get("/dashboard/calls")).html.partition("</nav>")[2]
    colleague = await people.join(caller.organization_id, role="builder")
    assert "A Monday" in (await colleague.get("/dashboard/calls")).html
    foreigner = await people.join(stranger.organization_id)
    assert "A Monday" not in (await foreigner.get("/dashboard/calls")).html
    delete = re.search(r"/dashboard/calls/views/[\w-]+/delete", page)
    assert delete
    assert (await foreigner.post(delete[0])).status == 404
    await owner.post(delete[0])
    assert "A Monday" not in (await owner.get("/dashboard/calls")).html.replace("The view was deleted", "")


async def test_every_bar_of_the_overview_leads_to_its_calls(people: People, runtime: Runtime, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    await add_call(
        runtime, caller, now(), from_number="+15550100041", ended_reason="silence", user_sentiment="negative"
    )
    await add_call(runtime, caller, now(), status="busy", user_sentiment="positive", ended_at=now())
    await add_call(runtime, caller, now() - timedelta(days=40), ended_reason="silence")
    async with runtime.database.write(caller.organization_id) as session:
        for call in (await session.exec(session.select(Call))).all():
            call.ended_at = now()
    page = (await owner.get("/dashboard?days=7")).html
    links = [unescape(link) for link in re.findall(r'href="(/dashboard/calls\?[^"]+)"', page)]
    assert len([link for link in links if "last_day" in link]) == 2 * 7
    for part, expected in (("ended_reason=silence", 1), ("status=busy", 1), ("user_sentiment=negative", 1)):
        found = (await owner.get(next(link for link in links if part in link))).html
        assert found.count('class="row-link"') == expected, part


async def test_the_filters_are_accessible(window: Window) -> None:
    await window.open("/dashboard/calls?ended_reason=silence")
    await window.check_accessibility()
    await window.page.set_viewport_size({"width": 390, "height": 844})
    await window.check_accessibility()
    assert await window.page.evaluate("document.documentElement.scrollWidth") <= 390
    await window.page.get_by_label("Name of the view").fill("Silent")
    await window.page.get_by_role("button", name="Save view").click()
    await window.page.get_by_role("link", name="Silent").wait_for()
    await window.check_accessibility()


async def test_contacts_of_selected_calls_are_tagged_and_not_called(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    outbound = {"direction": "outbound", "from_number": "+15550100200", "to_number": "+15550100003"}
    chosen = [
        str((await add_call(runtime, owning, now(), **fields)).id)
        for owning, fields in (
            (caller, {"from_number": "+15550100001"}),
            (caller, {"from_number": "+15550100001"}),
            (caller, outbound),
            (caller, {"from_number": "anonymous"}),
            (stranger, {"from_number": "+15550100009"}),
        )
    ]
    url = "/dashboard/calls/contacts"
    await owner.post(url, {"ids[]": chosen, "act": "tag", "tag": "Late", "query": "direction=inbound"})
    page = (await owner.get("/dashboard/calls?direction=inbound")).html
    assert "2 contacts were tagged." in page
    contacts = objects_at((await caller.get("/v1/contacts")).json, "items")
    assert {(contact["phone_number"], contact["tags"]) for contact in contacts} == {
        ("+15550100001", "Late"),
        ("+15550100003", "Late"),
    }
    await owner.post(url, {"ids[]": chosen, "act": "do_not_call"})
    blocked = objects_at((await caller.get("/v1/do-not-call")).json, "items")
    assert {entry["phone_number"] for entry in blocked} == {"+15550100001", "+15550100003"}
    assert (await stranger.get("/v1/contacts")).json["total"] == 0
    await owner.post(url, {"ids[]": chosen, "act": "tag"})
    assert "required" in (await owner.get("/dashboard/calls")).html


async def test_all_calls_of_a_page_are_selected_at_once(window: Window, live: LivePlatform) -> None:
    for number in ("+15550100001", "+15550100002"):
        await add_call(live.runtime, live.caller, now(), from_number=number)
    await window.open("/dashboard/calls")
    await window.page.get_by_label("Select all on this page").check()
    await window.page.get_by_label("Tag to add").fill("spring")
    await window.check_accessibility()
    await window.press("Apply")
    await window.page.get_by_text("2 contacts were tagged.").wait_for()
