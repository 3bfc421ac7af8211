"""The pages of text messages."""

from switchboard.foundation.encryption.content import open_content
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.queries import select_messages
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, create_bakery, fresh_number
from tests.fixtures.dashboard import People, Person, Window


async def send_message(
    platform: LivePlatform, to_number: str = "+15550100001", body: str = "Your bread is ready."
) -> str:
    """Send a text message through the API, and return its conversation's id."""
    response = await platform.caller.post(
        "/v1/sms", {"to_number": to_number, "from_number_id": platform.number_id, "body": body}
    )
    assert response.status == 201, response.body
    return str(response.json["conversation_id"])


async def create_bakery_owner(people: People, runtime: Runtime, caller: Caller) -> tuple[Person, LivePlatform]:
    return await people.join(caller.organization_id), await create_bakery(runtime, caller, fresh_number())


async def test_a_message_is_sent_and_the_reply_is_answered(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/texts")
    await page.get_by_text("No open conversations").wait_for()
    await page.get_by_role("link", name="New message").click()
    # This recipient replies "Yes, please."
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


async def test_conversations_are_sorted_by_their_latest_message(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    owner, platform = await create_bakery_owner(people, runtime, caller)
    await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada"})
    await send_message(platform, "+15550100001", "First.")
    await send_message(platform, "+15550100002", "Second.")
    await send_message(platform, "+15550100001", "Third <b>.")
    html = (await owner.get("/dashboard/texts")).html
    assert html.index("Third &lt;b&gt;.") < html.index("Second.")
    assert "First." not in html
    assert "Ada" in html
    first = (await owner.get("/dashboard/texts?limit=1")).html
    assert "Second." not in first
    assert "Second." in (await owner.get("/dashboard/texts?limit=1&offset=1")).html
    assert "offset=1" in first


async def test_recipients_who_opted_out_cannot_be_answered(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await create_bakery_owner(people, runtime, caller)
    conversation = await send_message(platform)
    await caller.post("/v1/do-not-call", {"phone_number": "+15550100001"})
    html = (await owner.get(f"/dashboard/texts/{conversation}")).html
    assert "This contact has opted out" in html
    assert 'name="body"' not in html
    refused = await owner.post(f"/dashboard/texts/{conversation}", {"body": "Please?"})
    assert refused.status == 409
    assert "Please?" in refused.html


async def test_a_users_reply_replaces_the_agents(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await create_bakery_owner(people, runtime, caller)
    conversation = await send_message(platform)
    async with runtime.database.write(caller.organization_id) as session:
        conversation_row = (await session.exec(session.select(SmsConversation))).one()
        conversation_row.reply_due_at = conversation_row.created_at
    assert "The agent is replying" in (await owner.get(f"/dashboard/texts/{conversation}")).html
    assert (await owner.post(f"/dashboard/texts/{conversation}", {"body": "It is me."})).status == 303
    async with runtime.database.write(caller.organization_id) as session:
        texts = (await session.exec(select_messages(session))).all()
        await open_content(session, *texts)
        assert {(text.author, text.body.value) for text in texts} == {
            ("api", "Your bread is ready."),
            ("person", "It is me."),
        }
    assert "The agent is replying" not in (await owner.get(f"/dashboard/texts/{conversation}")).html


async def test_a_refused_message_keeps_the_input(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, platform = await create_bakery_owner(people, runtime, caller)
    conversation = await send_message(platform)
    refused = await owner.post(f"/dashboard/texts/{conversation}", {"body": "x" * 1601})
    assert refused.status == 422
    assert "x" * 1601 in refused.html
    refused = await owner.post(
        "/dashboard/texts/new", {"to_number": "77", "from_number_id": platform.number_id, "body": "Kept."}
    )
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    assert "Kept." in refused.html


async def test_other_organizations_messages_can_be_neither_read_nor_answered(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    foreign_conversation = await send_message(await create_bakery(runtime, stranger, fresh_number()))
    assert (await owner.get(f"/dashboard/texts/{foreign_conversation}")).status == 404
    assert (await owner.get(f"/dashboard/texts/{foreign_conversation}/live")).status == 404
    assert (await owner.post(f"/dashboard/texts/{foreign_conversation}", {"body": "Hello"})).status == 404
    assert "Your bread" not in (await owner.get("/dashboard/texts")).html


async def test_a_conversation_is_found_by_any_spelling_of_the_number(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    owner, platform = await create_bakery_owner(people, runtime, caller)
    await send_message(platform, "+15550100001", "First.")
    await send_message(platform, "+15550100002", "Second.")
    html = (await owner.get("/dashboard/texts?number=%2B1+555-010-0001")).html
    assert "First." in html
    assert "Second." not in html
    assert "number=%2B15550100001" in html, "the live part shows the same"
    assert "No messages with this number" in (await owner.get("/dashboard/texts?number=%2B15550100003")).html
