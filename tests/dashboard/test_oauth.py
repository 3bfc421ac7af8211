"""The consent page, connected applications, and the registration of OAuth clients, as people in a browser see them."""

import re
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import pytest
from sqlmodel import col, select
from switchboard.resources.identity.models import Membership
from switchboard.resources.oauth import clients
from switchboard.resources.oauth.models import OAuthGrant

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Seen, make_person
from tests.fixtures.oauth import Application, answered


@dataclass(slots=True)
class Consent:
    """An application, and a member of its organization who answers its requests."""

    application: Application
    person: Person

    def path(self, **changes: str | None) -> str:
        return f"/oauth/authorize?{urlencode(self.application.request(**changes))}"

    async def allow(self, organization_id: UUID | None = None, **changes: str | None) -> Seen:
        chosen = str(organization_id or self.application.caller.organization_id)
        return await self.person.post(self.path(**changes), {"decision": "approve", "organization_id": chosen})

    async def grants(self) -> list[OAuthGrant]:
        async with self.application.runtime.database.system() as session:
            return list(
                (await session.exec(select(OAuthGrant).where(col(OAuthGrant.client_id) == self.application.id))).all()
            )

    async def tokens(self) -> dict[str, str]:
        given = await self.application.redeem(answered((await self.allow()).location)["code"])
        return {name: str(value) for name, value in given.json.items()}


@pytest.fixture
async def consent(application: Application, people: People, caller: Caller) -> Consent:
    return Consent(application, await people.join(caller.organization_id, role="member"))


async def test_a_user_signs_in_allows_and_the_application_gets_its_tokens(
    application: Application, caller: Caller
) -> None:
    person = await make_person(application.runtime, application.client, caller.organization_id, role="member")
    consent = Consent(application, person)
    path = consent.path(scope="agents:read sms:write", state="a b/&?=%")
    asked = await person.get(path)
    assert asked.status == 303
    assert urlsplit(asked.location).path == "/dashboard/sign-in"
    after = re.search(r'name="after" value="([^"]*)"', (await person.get(asked.location)).html)
    assert after
    back = (await person.sign_in(after=after[1].replace("&amp;", "&"))).location
    page = await person.get(back)
    assert page.status == 200
    for shown in ("Calendar sync requests access", "app.example.com", "list and view agents", "send SMS", person.email):
        assert shown in page.html
    assert "contacts" not in page.html
    sent = await person.post(back, {"decision": "approve", "organization_id": str(caller.organization_id)})
    assert sent.status == 303
    assert sent.location.startswith("https://app.example.com/cb?")
    told = answered(sent.location)
    assert (told["state"], told["iss"]) == ("a b/&?=%", application.issuer)
    tokens = await application.redeem(told["code"])
    assert tokens.json["scope"] == "agents:read sms:write"
    holder = application.holder({"access_token": str(tokens.json["access_token"])})
    assert (await holder.get("/v1/agents")).status == 200


async def test_a_user_who_cancels_gives_nothing(consent: Consent) -> None:
    sent = await consent.person.post(consent.path(), {"decision": "decline"})
    assert sent.status == 303
    assert answered(sent.location)["error"] == "access_denied"
    assert not await consent.grants()


async def test_the_page_cannot_be_framed_and_tells_nobody_its_address(consent: Consent) -> None:
    headers = (await consent.person.get(consent.path())).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["form-action"] == "'self' https:"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("uri", "reached"), [("http://localhost:3000/cb", "http://localhost:3000"), ("http://[::1]:3000/cb", "http:")]
)
async def test_the_form_may_lead_to_an_application_on_this_machine(consent: Consent, uri: str, reached: str) -> None:
    await clients.update_client(
        consent.application.runtime.database, consent.application.id, name="App", redirect_uris=[uri]
    )
    page = await consent.person.get(consent.path(redirect_uri=uri))
    assert f"form-action 'self' {reached};" in page.headers["Content-Security-Policy"]


async def test_a_form_of_another_site_or_session_grants_nothing(consent: Consent) -> None:
    fields: dict[str, str | list[str]] = {
        "decision": "approve",
        "organization_id": str(consent.application.caller.organization_id),
    }
    for token in ({}, {"csrf_token": ""}, {"csrf_token": "0" * 64}):
        assert (await consent.person.send(consent.path(), {**fields, **token})).status == 403
    consent.person.headers["Origin"] = "https://evil.example.com"
    assert (await consent.person.post(consent.path(), fields)).status == 403
    assert not await consent.grants()


async def test_a_request_that_is_answered_to_nobody_is_a_page(consent: Consent) -> None:
    for changes in (
        {"client_id": "nobody"},
        {"redirect_uri": "https://evil.example.com/cb"},
        {"redirect_uri": None},
        {"state": "a\0b"},
    ):
        for answer in (await consent.person.get(consent.path(**changes)), await consent.allow(**changes)):
            assert answer.status == 400
            assert "Location" not in answer.headers
            assert "This application cannot be connected" in answer.html
            assert "evil.example.com" not in answer.html
    assert not await consent.grants()


async def test_a_faulty_request_is_answered_to_the_application_once_the_user_has_signed_in(consent: Consent) -> None:
    for changes, error in (({"scope": "everything"}, "invalid_scope"), ({"state": None}, "invalid_request")):
        told = answered((await consent.person.get(consent.path(**changes))).location)
        assert (told["error"], told["iss"]) == (error, consent.application.issuer)
        assert answered((await consent.allow(**changes)).location)["error"] == error
    await consent.person.post("/dashboard/sign-out")
    assert (await consent.person.get(consent.path(scope="everything"))).location.startswith("/dashboard/sign-in")


async def test_a_user_of_several_organizations_chooses_one(consent: Consent, stranger: Caller) -> None:
    page = await consent.person.get(consent.path())
    assert "<select" not in page.html
    async with consent.application.runtime.database.system() as session:
        session.add(Membership(organization_id=stranger.organization_id, user_id=consent.person.user_id))
    page = await consent.person.get(consent.path())
    assert page.html.count(f'<option value="{stranger.organization_id}"') == 1
    assert f'<option value="{consent.application.caller.organization_id}" selected' in page.html
    assert (await consent.allow(stranger.organization_id)).status == 303
    assert [grant.organization_id for grant in await consent.grants()] == [stranger.organization_id]


async def test_an_organization_of_others_cannot_be_chosen(consent: Consent, stranger: Caller) -> None:
    refused = await consent.allow(stranger.organization_id)
    assert refused.status == 400
    assert "not a member" in refused.html
    for made_up in ("", "x", "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c99"):
        answer = await consent.person.post(consent.path(), {"decision": "approve", "organization_id": made_up})
        assert answer.status == 400
    assert not await consent.grants()


async def test_a_user_without_an_organization_can_only_cancel(application: Application, people: People) -> None:
    consent = Consent(application, await people.join(None))
    page = await consent.person.get(consent.path())
    assert "You do not belong to an organization yet" in page.html
    assert 'value="approve"' not in page.html
    assert (await consent.allow()).status == 400


async def test_a_member_cannot_have_an_application_do_what_only_owners_may(
    consent: Consent, people: People, caller: Caller
) -> None:
    application, scope = consent.application, "calls:read phone-numbers:write webhooks:write"
    page = (await consent.person.get(consent.path(scope=scope))).html
    assert "does not get <code>phone-numbers:write</code> and <code>webhooks:write</code>" in page
    assert "purchase, update, release numbers" not in page
    assert "Allow" not in (await consent.person.get(consent.path(scope="webhooks:write"))).html, (
        "nothing is left to allow"
    )
    tokens = await application.redeem(answered((await consent.allow(scope=scope)).location)["code"])
    assert tokens.json["scope"] == "calls:read", "which tells the application"
    assert answered((await consent.allow(scope="webhooks:write")).location)["error"] == "access_denied"
    owner = Consent(application, await people.join(caller.organization_id))
    assert "does not get" not in (await owner.person.get(owner.path(scope=scope))).html
    tokens = await application.redeem(answered((await owner.allow(scope=scope)).location)["code"])
    assert set(str(tokens.json["scope"]).split()) == set(scope.split())


async def test_an_owner_who_becomes_a_member_has_no_application_act_as_an_owner(
    consent: Consent, people: People, caller: Caller
) -> None:
    first, second = await people.join(caller.organization_id), await people.join(caller.organization_id)
    owner, application = Consent(consent.application, first), consent.application
    tokens = await application.redeem(answered((await owner.allow(scope="calls:read webhooks:write")).location)["code"])
    holder = application.holder({"access_token": str(tokens.json["access_token"])})
    assert (await second.post(f"/dashboard/team/{first.user_id}/role", {"role": "member"})).status == 303
    assert (await holder.post("/v1/webhook-endpoints", {"url": "https://example.com/hooks"})).status == 403
    assert (await holder.get("/v1/calls")).status == 200


async def test_whoever_was_signed_out_comes_back_to_the_request(consent: Consent) -> None:
    path = consent.path()
    consent.person.headers["Referer"] = f"http://localhost{path}"
    consent.person.client.cookie_jar = None
    sent = await consent.person.send(path, {"decision": "approve"})
    assert (
        sent.location.startswith("/dashboard/sign-in?after=/oauth/authorize?")
        or "after=%2Foauth%2Fauthorize" in sent.location
    )


async def test_a_name_is_text(consent: Consent) -> None:
    name = '<script>alert(1)</script> & "App"'
    uris = [consent.application.redirect_uri]
    await clients.update_client(
        consent.application.runtime.database, consent.application.id, name=name, redirect_uris=uris
    )
    assert "<script>alert" not in (await consent.person.get(consent.path())).html


async def test_members_see_and_end_their_own_connections_and_owners_all(
    consent: Consent, people: People, caller: Caller, stranger: Caller
) -> None:
    application, page = consent.application, "/dashboard/connected-apps"
    holder = application.holder(await consent.tokens())
    assert (await holder.get("/v1/agents")).status == 200
    path = f"{page}/{application.id}/{consent.person.user_id}/disconnect"
    assert "Calendar sync" in (await consent.person.get(page)).html
    colleague, foreigner = (
        await people.join(caller.organization_id, role="member"),
        await people.join(stranger.organization_id),
    )
    assert "Calendar sync" not in (await colleague.get(page)).html
    assert (await colleague.post(path)).status == 403
    assert "Calendar sync" not in (await foreigner.get(page)).html
    assert (await foreigner.post(path)).status == 404
    assert (await holder.get("/v1/agents")).status == 200
    owner = await people.join(caller.organization_id)
    assert consent.person.email in (await owner.get(page)).html
    assert (await owner.post(path)).location == page
    assert (await holder.get("/v1/agents")).status == 401
    assert (await consent.person.post(path)).status == 404
    assert ("oauth_grant.revoked") in {action for _, action, _ in await people.audit(caller.organization_id)}


async def test_the_audit_log_says_who_did_it_through_which_application(
    consent: Consent, people: People, caller: Caller
) -> None:
    given = await consent.application.redeem(answered((await consent.allow(scope="agents:write")).location)["code"])
    holder = consent.application.holder({"access_token": str(given.json["access_token"])})
    assert (await holder.post("/v1/agents", {"name": "Made by an application"})).status == 201
    owner = await people.join(caller.organization_id)
    assert (
        f"{consent.person.email} via Calendar sync</a>"
        in (await owner.get("/dashboard/audit?action=agent.created")).html
    )


async def test_a_member_who_is_removed_takes_their_applications_along_at_once(
    consent: Consent, people: People, caller: Caller
) -> None:
    holder = consent.application.holder(await consent.tokens())
    assert (await holder.get("/v1/agents")).status == 200
    owner = await people.join(caller.organization_id)
    assert (await owner.post(f"/dashboard/team/{consent.person.user_id}/remove")).status == 303
    assert (await holder.get("/v1/agents")).status == 401


async def test_a_superadmin_registers_edits_and_deletes_applications(
    consent: Consent, people: People, caller: Caller
) -> None:
    admin = await people.join(caller.organization_id, superadmin=True)
    start = "/dashboard/oauth-clients"
    uris = "https://new.example.com/cb\r\nhttp://localhost:3000/cb\r\n"
    made = await admin.post(f"{start}/new", {"name": "Fresh", "redirect_uris": uris, "public": "false"})
    assert made.status == 200
    client_id, secret = re.findall(r'<code id="client-(?:id|secret)">([^<]+)</code>', made.html)
    (row,) = [
        client
        for client in await clients.list_clients(consent.application.runtime.database)
        if client.client_id == client_id
    ]
    assert row.redirect_uris == ["https://new.example.com/cb", "http://localhost:3000/cb"]
    fresh = Consent(consent.application, consent.person)
    fresh.application.client_id, fresh.application.secret, fresh.application.id = client_id, secret, row.id
    fresh.application.redirect_uri = "https://new.example.com/cb"
    tokens = await fresh.tokens()
    listing, editing = await admin.get(start), await admin.get(f"{start}/{row.id}")
    assert "https://new.example.com/cb\nhttp://localhost:3000/cb" in editing.html
    assert client_id in listing.html
    assert secret not in listing.html + editing.html, "it is shown once"

    bad = await admin.post(f"{start}/{row.id}", {"name": "Fresh", "redirect_uris": "https://evil.example.com/*"})
    assert bad.status == 422
    assert "is not a redirect URI" in bad.html
    saved = await admin.post(f"{start}/{row.id}", {"name": "Renamed", "redirect_uris": "https://new.example.com/cb"})
    assert saved.location == f"{start}/{row.id}"
    rotated = await admin.post(f"{start}/{row.id}/rotate-secret")
    new_secret = re.findall(r'<code id="client-secret">([^<]+)</code>', rotated.html)[0]
    assert (await fresh.application.refresh(tokens["refresh_token"])).status == 401
    fresh.application.secret = new_secret
    assert (await fresh.application.refresh(tokens["refresh_token"])).status == 200
    assert (await admin.post(f"{start}/{row.id}/delete")).location == start
    assert (await fresh.application.holder(tokens).get("/v1/agents")).status == 401
    assert (await admin.get(f"{start}/{row.id}")).status == 404
    public = await admin.post(f"{start}/new", {"name": "Public", "redirect_uris": uris, "public": "true"})
    assert "client-secret" not in public.html


async def test_nobody_else_comes_near_the_registration(consent: Consent, people: People, caller: Caller) -> None:
    owner, start = await people.join(caller.organization_id), "/dashboard/oauth-clients"
    one = f"{start}/{consent.application.id}"
    assert "OAuth clients" not in (await owner.get("/dashboard")).html
    for path in (start, f"{start}/new", one):
        assert (await owner.get(path)).status == 403
    for path in (f"{start}/new", one, f"{one}/rotate-secret", f"{one}/delete"):
        assert (await owner.post(path, {"name": "Mine", "redirect_uris": "https://evil.example.com/"})).status == 403
    (row,) = [
        client
        for client in await clients.list_clients(consent.application.runtime.database)
        if client.id == consent.application.id
    ]
    assert (row.name, row.redirect_uris) == ("Calendar sync", ["https://app.example.com/cb"])
