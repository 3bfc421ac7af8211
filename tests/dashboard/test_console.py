"""The operator console, and support sessions in an organization."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from sqlalchemy.exc import DBAPIError
from sqlmodel import col, select, update
from switchboard.apps.running_processes import report_process
from switchboard.foundation.database import now
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import SupportSession
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations
from tests.fixtures.dashboard import People, Person, open_owner_window
from tests.fixtures.monitors import connect_telephone

PAGE = "/dashboard/console/organizations"
PATIENCE_MS = 20_000
"""Most time until a live part of the console shows a change, on a busy machine."""


@pytest.fixture
async def operator(people: People) -> Person:
    """A superadmin who is a member of no organization."""
    return await people.join(None, superadmin=True)


async def enter(operator: Person, caller: Caller, reason: str = "ticket 42") -> None:
    answer = await operator.post(f"{PAGE}/{caller.organization_id}/support", {"reason": reason})
    assert (answer.status, answer.location) == (303, "/dashboard")


async def test_a_superadmin_lands_in_the_console(operator: Person, caller: Caller) -> None:
    assert (await operator.get("/dashboard")).location == "/dashboard/console"
    page = (await operator.get("/dashboard/console")).html
    assert "Webhook deliveries" in page
    assert (await operator.post(f"/dashboard/organizations/{caller.organization_id}")).status == 404


async def test_a_superadmin_without_an_organization_has_an_account(operator: Person) -> None:
    assert operator.email in (await operator.get("/dashboard/account")).html
    assert (await operator.get("/dashboard/account/second-factor")).status == 200
    assert (await operator.post("/dashboard/account/sessions/end")).status == 303


async def test_organizations_are_found_and_sorted_by_their_figures(
    operator: Person, organizations: Organizations, runtime: Runtime
) -> None:
    poor, rich = await organizations.create(), await organizations.create()
    for caller, amount in ((poor, 5), (rich, 500)):
        credited = await operator.post(f"{PAGE}/{caller.organization_id}/credit", {"amount": str(amount)})
        assert credited.status == 303
    async with runtime.database.write(poor.organization_id) as session:
        assert (await ledger.get_account_balance(session))[0] == 5
    page = (await operator.get(f"{PAGE}?sort=balance")).html
    assert page.index(str(poor.organization_id)) < page.index(str(rich.organization_id))
    found = (await operator.get(f"{PAGE}?search={rich.organization_id}")).html
    assert str(rich.organization_id) in found
    assert "$500.00" in found
    assert str(poor.organization_id) not in found
    for sort in ("name", "newest", "cost", "calls", "live_calls"):
        assert (await operator.get(f"{PAGE}?sort={sort}")).status == 200
    assert (await operator.get(f"{PAGE}?sort=id")).status == 422


async def test_owners_and_members_cannot_open_the_console(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    for path in ("", "/organizations", f"/organizations/{caller.organization_id}", "/users", "/plugins"):
        assert (await owner.get(f"/dashboard/console{path}")).status == 403
    for act in ("suspend", "resume", "credit", "support"):
        fields: dict[str, str | list[str]] = {"reason": "x", "amount": "1"}
        assert (await owner.post(f"{PAGE}/{caller.organization_id}/{act}", fields)).status == 403


async def test_members_of_a_suspended_organization_see_why(operator: Person, people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    assert (await operator.post(f"{PAGE}/{caller.organization_id}/suspend", {"reason": " "})).status == 422
    assert (await owner.get("/dashboard")).status == 200
    await operator.post(f"{PAGE}/{caller.organization_id}/suspend", {"reason": "unpaid invoices"})
    warning = '<p class="notice warning" role="status">The organization is suspended.</p>'
    assert warning in (await operator.get(f"{PAGE}/{caller.organization_id}")).html
    refused = await owner.get("/dashboard")
    assert refused.status == 403
    assert "unpaid invoices" in refused.html
    await enter(operator, caller)
    assert (await operator.get("/dashboard/calls")).status == 200
    await operator.post(f"{PAGE}/{caller.organization_id}/resume")
    assert (await owner.get("/dashboard")).status == 200
    entries = await people.list_audit_entries(caller.organization_id)
    actor = f"user:{operator.user_id} (operator)"
    assert (actor, "organization.suspended", "unpaid invoices") in entries
    assert (actor, "organization.resumed", str(caller.organization_id)) in entries


async def test_a_support_session_is_audited_and_visible_to_the_owners(
    operator: Person, people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    await enter(operator, caller)
    assert "for support until" in (await operator.get("/dashboard/agents")).html
    assert (await operator.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})).status == 303
    entries = await people.list_audit_entries(caller.organization_id)
    actor = f"user:{operator.user_id} (support)"
    assert [action for named, action, _ in entries if named == actor] == ["support_session.started", "contact.created"]
    assert "ticket 42" in (await owner.get("/dashboard")).html
    team = (await owner.get("/dashboard/team")).html
    assert operator.email in team
    assert f"{operator.email} (support)" in (await owner.get("/dashboard/audit")).html


async def test_a_support_session_ends_after_an_hour(operator: Person, caller: Caller, runtime: Runtime) -> None:
    await enter(operator, caller)
    async with runtime.database.system() as session:
        (started,) = (await session.exec(select(SupportSession))).all()
        assert started.expires_at - started.created_at <= timedelta(hours=1, seconds=1)
        await session.exec(update(SupportSession).values(expires_at=now()))
    assert (await operator.get("/dashboard/agents")).location == "/dashboard/console"


async def test_owners_end_and_forbid_support_sessions(
    operator: Person, people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner, other = await people.join(caller.organization_id), await people.join(stranger.organization_id)
    await enter(operator, caller)
    async with runtime.database.system() as session:
        (started,) = (await session.exec(select(SupportSession))).all()
    assert (await other.post(f"/dashboard/support/{started.id}/end")).status == 404
    assert (await operator.get("/dashboard/agents")).status == 200
    assert (await owner.post(f"/dashboard/support/{started.id}/end")).status == 303
    assert (await operator.get("/dashboard/agents")).status == 303
    await enter(operator, caller)
    assert (await operator.post("/dashboard/support/policy", {"allowed": "true"})).status == 403
    assert (await owner.post("/dashboard/support/policy", {"allowed": "false"})).status == 303
    assert (await operator.get("/dashboard/agents")).status == 303
    refused = await operator.post(f"{PAGE}/{caller.organization_id}/support", {"reason": "x"})
    assert refused.status == 403
    assert "do not allow" in refused.html


async def test_a_support_session_makes_nothing_that_outlasts_it(
    operator: Person, people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    agent_id = (await caller.post("/v1/agents", {"name": "A", "system_prompt": "p"})).json["id"]
    await enter(operator, caller)
    forms: list[tuple[str, dict[str, str | list[str]]]] = [
        ("/dashboard/keys/new", {"name": "k", "scopes[]": ["agents:read"]}),
        (f"/dashboard/keys/{caller.key_id}/rotate", {"hours": "1"}),
        ("/dashboard/team", {"email": "me@example.com", "role": "owner"}),
        (f"/dashboard/team/{owner.user_id}/role", {"role": "builder"}),
        (f"/dashboard/team/{owner.user_id}/remove", {}),
        ("/dashboard/webhooks/new", {"url": "https://example.com/", "events[]": ["call.started"]}),
        ("/dashboard/webhooks/integration", {"webhook_url": "https://example.com/"}),
        ("/dashboard/providers/llm/offline", {}),
        ("/dashboard/general", {"timezone": "UTC"}),
        (f"/dashboard/agents/{agent_id}/widgets", {}),
        (f"/dashboard/agents/{agent_id}/talk", {}),
        (f"/dashboard/agents/{agent_id}", {"name": "A", "webhook_url": "https://example.com/"}),
        ("/dashboard/live/answer", {"name": "operator"}),
    ]
    before = await people.list_audit_entries(caller.organization_id)
    for path, fields in forms:
        answer = await operator.post(path, fields)
        assert answer.status == 403, (path, answer.status)
        assert "webhook secret" not in answer.html
    assert await people.list_audit_entries(caller.organization_id) == before
    for path in ("keys", "team", "providers", "webhooks/integration", "general", "audit"):
        page = await operator.get(f"/dashboard/{path}")
        assert (page.status, "/dashboard/providers" in page.html) == (200, True), "it sees what an owner sees"


async def test_leaving_and_signing_out_end_a_support_session(
    operator: Person, people: People, caller: Caller, runtime: Runtime
) -> None:
    await enter(operator, caller)
    assert (await operator.post("/dashboard/support/leave")).location == f"{PAGE}/{caller.organization_id}"
    assert (await operator.get("/dashboard/agents")).status == 303
    await enter(operator, caller)
    await operator.post("/dashboard/sign-out")
    async with runtime.database.write(caller.organization_id) as session:
        assert not [one for one in (await session.exec(select(SupportSession))).all() if one.is_active]
    entries = await people.list_audit_entries(caller.organization_id)
    assert [action for _, action, _ in entries].count("support_session.ended") == 1


async def test_a_superadmin_who_leaves_is_in_the_own_organization_again(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    operator = await people.join(stranger.organization_id, superadmin=True)
    await enter(operator, caller)
    left = (await operator.post("/dashboard/support/leave")).location
    assert 'class="organization" href="/dashboard/organizations"' in (await operator.get(left)).html
    assert (await operator.get("/dashboard")).status == 200
    await enter(operator, caller)
    async with runtime.database.system() as session:
        await session.exec(update(SupportSession).values(expires_at=now()))
    assert (await operator.get("/dashboard")).status == 200, "a support session that has ended strands nobody, either"


async def test_users_are_found_signed_out_and_their_second_factor_is_reset(
    operator: Person, people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    page = (await operator.get(f"/dashboard/console/users?search={owner.email}")).html
    assert str(caller.organization_id) in page
    assert f"<strong>{operator.email}" not in page
    assert (await operator.post(f"/dashboard/console/users/{owner.user_id}/sign-out")).status == 303
    assert "/dashboard/sign-in" in (await owner.get("/dashboard")).location
    assert (await operator.post(f"/dashboard/console/users/{owner.user_id}/reset-second-factor")).status == 303
    entries = await people.list_audit_entries(caller.organization_id)
    actor = f"user:{operator.user_id} (operator)"
    assert [action for named, action, _ in entries if named == actor] == [
        "user.sessions_ended",
        "user.second_factor_removed",
    ]


async def test_plugins_are_listed(operator: Person) -> None:
    page = (await operator.get("/dashboard/console/plugins")).html
    assert "telephony loopback" in page


async def test_the_system_role_reads_amounts_but_no_notes(runtime: Runtime) -> None:
    async with runtime.database.system() as session:
        assert (await session.exec(select(col(LedgerEntry.amount)))).all() == []
    with pytest.raises(DBAPIError, match="permission denied"):
        async with runtime.database.system() as session:
            await session.exec(select(col(LedgerEntry.note)))


async def test_an_operator_enters_and_leaves_in_the_browser(browser: Browser, live: LivePlatform) -> None:
    async with open_owner_window(browser, live, superadmin=True) as window:
        page = window.page
        other = await Organizations(live.runtime, live.caller.client).create()
        await window.open(f"{PAGE}?search={other.organization_id}")
        await page.locator("main .row-link").click()
        await page.get_by_label("Reason").last.fill("ticket 7")
        await page.get_by_role("button", name="Sign in for support").click()
        await page.get_by_text("for support until").wait_for()
        await window.check_accessibility()
        await page.get_by_role("button", name="Leave").click()
        await page.get_by_role("heading", name="Sign in for support").wait_for()
        await page.get_by_text("ticket 7").wait_for()
        await window.check_accessibility()


async def test_the_console_stays_current_in_the_browser(browser: Browser, live: LivePlatform) -> None:
    async with open_owner_window(browser, live, superadmin=True) as window:
        overview = window.page
        await window.open("/dashboard/console")
        listing, details = await overview.context.new_page(), await overview.context.new_page()
        base = live.runtime.settings.base_url
        await listing.goto(f"{base}{PAGE}?sort=newest")
        await details.goto(f"{base}{PAGE}/{live.caller.organization_id}")
        row = listing.locator("tr", has=listing.locator(f"a[href$='{live.caller.organization_id}']"))
        live_calls = [
            find_tile(overview, "Live calls"),
            row.locator("td").nth(1),
            find_tile(details, "Live calls"),
        ]
        for figure in live_calls:
            await expect(figure).to_have_text(re.compile("^0"), timeout=PATIENCE_MS)
        async with connect_telephone(live):
            for figure in live_calls:
                await expect(figure).to_have_text(re.compile("^1"), timeout=PATIENCE_MS)
        for figure in live_calls:
            await expect(figure).to_have_text(re.compile("^0"), timeout=PATIENCE_MS)
        async with report_process(
            live.runtime.redis, live.runtime.registry, live.runtime.settings, node="x", role="gardener"
        ):
            await expect(overview.get_by_text("gardener")).to_be_visible(timeout=PATIENCE_MS)
            await record_failure(live)
            for page in (overview, details):
                failing = page.get_by_role("region", name="Failing providers")
                await expect(failing.get_by_text("shaky")).to_be_visible(timeout=PATIENCE_MS)
            await overview.bring_to_front()
            await window.check_accessibility()


def find_tile(page: Page, name: str) -> Locator:
    """Return the figure of a tile."""
    return page.locator(".tile", has=page.get_by_text(name, exact=True)).locator("dd")


async def record_failure(live: LivePlatform) -> None:
    """Record that a provider failed in a call of the organization."""
    failure = {"capability": "llm", "provider": "shaky", "count": 2, "error": "it broke"}
    async with live.runtime.database.write(live.caller.organization_id) as session:
        await session.exec(update(Call).values(provider_failures=[failure]))


async def test_the_console_is_accessible_and_fits_a_phone(browser: Browser, live: LivePlatform) -> None:
    async with open_owner_window(browser, live, superadmin=True) as window:
        places = ("", "/organizations", f"/organizations/{live.caller.organization_id}", "/users", "/plugins")
        for path in places:
            await window.open(f"/dashboard/console{path}")
            for width in (1440, 390):
                await window.page.set_viewport_size({"width": width, "height": 900})
                await window.check_accessibility()
                assert await window.page.evaluate("document.documentElement.scrollWidth") <= width, path
