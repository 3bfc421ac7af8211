"""The pages of texts."""

from switchboard.resources.sms import service as sms
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, bakery, fresh_number
from tests.fixtures.dashboard import People, Person, Window


async def texted(platform: LivePlatform, to_number: str = "+15550100001", body: str = "Your bread is ready.") -> str:
    """A text that a client of the API has sent; answers its conversation's id."""
    sent = await platform.caller.post(
        "/v1/sms", {"to_number": to_number, "from_number_id": platform.number_id, "body": body}
    )
    assert sent.status == 201, sent.body
    return str(sent.json["conversation_id"])


async def at_the_bakery(people: People, runtime: Runtime, caller: Caller) -> tuple[Person, LivePlatform]:
    return await people.join(caller.organization_id), await bakery(runtime, caller, fresh_number())


async def test_somebody_is_texted_answers_and_is_answered(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/texts")
    await page.get_by_text("No text messages yet").wait_for()
    await page.get_by_role("link", name="New message").click()
    # Who answers "Yes, please."
    await page.get_by_label("To", exact=True).or_(page.get_by_label("To *")).first.fill("+15550100081")
    await page.get_by_label("Message *").fill("Shall we keep your bread?")
    await window.check_accessibility()
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Your team · ").wait_for()
    await page.get_by_text("Yes, please.").wait_for()
    await page.get_by_text("Agent · ").wait_for()
    await page.get_by_label("Reply").fill("Done. See you tomorrow.")
    await page.get_by_label("Reply").press("Control+Enter")
    await page.locator(".bubble").filter(has_text="Done. See you tomorrow.").filter(has_text="delivered").wait_for()
    await window.check_accessibility()
    await page.get_by_role("link", name="Text messages", exact=True).first.click()
    await page.get_by_role("link", name="+1 555-010-0081").wait_for()
    await window.check_accessibility()


async def test_the_latest_conversation_stands_first_with_its_last_text(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    owner, platform = await at_the_bakery(people, runtime, caller)
    await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada"})
    await texted(platform, "+15550100001", "First.")
    await texted(platform, "+15550100002", "Second.")
    await texted(platform, "+15550100001", "Third <b>.")
    html = (await owner.get("/dashboard/texts")).html
    assert html.index("Third &lt;b&gt;.") < html.index("Second.")
    assert "First." not in html
    assert "Ada" in html
    first = (await owner.get("/dashboard/texts?limit=1")).html
    assert "Second." not in first
    assert "Second." in (await owner.get("/dashboard/texts?limit=1&offset=1")).html
    assert "offset=1" in first


async def test_whoever_opted_out_cannot_be_answered(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await at_the_bakery(people, runtime, caller)
    conversation = await texted(platform)
    await caller.post("/v1/do-not-call", {"phone_number": "+15550100001"})
    html = (await owner.get(f"/dashboard/texts/{conversation}")).html
    assert "This contact has opted out" in html
    assert 'name="body"' not in html
    refused = await owner.post(f"/dashboard/texts/{conversation}", {"body": "Please?"})
    assert refused.status == 409
    assert "Please?" in refused.html


async def test_an_answer_is_a_persons_and_spares_the_agents(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await at_the_bakery(people, runtime, caller)
    conversation = await texted(platform)
    async with runtime.database.tenant(caller.organization_id) as session:
        owing = (await session.exec(sms.list_conversations(session))).one()
        owing.reply_due_at = owing.created_at
    assert "The agent is replying" in (await owner.get(f"/dashboard/texts/{conversation}")).html
    assert (await owner.post(f"/dashboard/texts/{conversation}", {"body": "It is me."})).status == 303
    async with runtime.database.tenant(caller.organization_id) as session:
        assert {(text.author, text.body) for text in (await session.exec(sms.list_messages(session))).all()} == {
            ("api", "Your bread is ready."),
            ("person", "It is me."),
        }
    assert "The agent is replying" not in (await owner.get(f"/dashboard/texts/{conversation}")).html


async def test_a_refused_text_keeps_what_was_typed(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await at_the_bakery(people, runtime, caller)
    conversation = await texted(platform)
    refused = await owner.post(f"/dashboard/texts/{conversation}", {"body": "x" * 1601})
    assert refused.status == 422
    assert "x" * 1601 in refused.html
    refused = await owner.post(
        "/dashboard/texts/new", {"to_number": "77", "from_number_id": platform.number_id, "body": "Kept."}
    )
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    assert "Kept." in refused.html


async def test_nobody_reads_or_answers_another_organizations_texts(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    theirs = await texted(await bakery(runtime, stranger, fresh_number()))
    assert (await owner.get(f"/dashboard/texts/{theirs}")).status == 404
    assert (await owner.get(f"/dashboard/texts/{theirs}/live")).status == 404
    assert (await owner.post(f"/dashboard/texts/{theirs}", {"body": "Hello"})).status == 404
    assert "Your bread" not in (await owner.get("/dashboard/texts")).html


async def test_the_conversation_with_a_number_is_found_as_the_number_is_written(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    owner, platform = await at_the_bakery(people, runtime, caller)
    await texted(platform, "+15550100001", "First.")
    await texted(platform, "+15550100002", "Second.")
    found = (await owner.get("/dashboard/texts?number=%2B1+555-010-0001")).html
    assert "First." in found
    assert "Second." not in found
    assert "number=%2B15550100001" in found, "the live part shows the same"
    assert "No messages with this number" in (await owner.get("/dashboard/texts?number=%2B15550100003")).html
