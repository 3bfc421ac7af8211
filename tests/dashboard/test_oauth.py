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
from tests.fixtures.dashboard import PageResponse, People, Person, create_person
from tests.fixtures.oauth import Application, parse_redirect


@dataclass(slots=True)
class Consent:
    """An application, and a member of its organization who answers its requests."""

    application: Application
    person: Person

    def path(self, **changes: str | None) -> str:
        return f"/oauth/authorize?{urlencode(self.application.request(**changes))}"

    async def allow(self, organization_id: UUID | None = None, **changes: str | None) -> PageResponse:
        chosen_id = str(organization_id or self.application.caller.organization_id)
        return await self.person.post(self.path(**changes), {"decision": "approve", "organization_id": chosen_id})

    async def grants(self) -> list[OAuthGrant]:
        async with self.application.runtime.database.system() as session:
            return list(
                (await session.exec(select(OAuthGrant).where(col(OAuthGrant.client_id) == self.application.id))).all()
            )

    async def obtain_tokens(self) -> dict[str, str]:
        response = await self.application.redeem(parse_redirect((await self.allow()).location)["code"])
        return {name: str(value) for name, value in response.json.items()}


@pytest.fixture
async def consent(application: Application, people: People, caller: Caller) -> Consent:
    return Consent(application, await people.join(caller.organization_id, role="builder"))


async def test_a_user_signs_in_approves_and_the_application_gets_tokens(
    application: Application, caller: Caller
) -> None:
    person = await create_person(application.runtime, application.client, caller.organization_id, role="builder")
    consent = Consent(application, person)
    path = consent.path(scope="agents:read sms:write", state="a b/&?=%")
    consent_page = await person.get(path)
    assert consent_page.status == 303
    assert urlsplit(consent_page.location).path == "/dashboard/sign-in"
    after = re.search(r'name="after" value="([^"]*)"', (await person.get(consent_page.location)).html)
    assert after
    back = (await person.sign_in(after=after[1].replace("&amp;", "&"))).location
    page = await person.get(back)
    assert page.status == 200
    for fragment in (
        "Calendar sync requests access",
        "app.example.com",
        "list and view agents",
        "send SMS",
        person.email,
    ):
        assert fragment in page.html
    assert "contacts" not in page.html
    response = await person.post(back, {"decision": "approve", "organization_id": str(caller.organization_id)})
    assert response.status == 303
    assert response.location.startswith("https://app.example.com/cb?")
    redirect = parse_redirect(response.location)
    assert (redirect["state"], redirect["iss"]) == ("a b/&?=%", application.issuer)
    tokens = await application.redeem(redirect["code"])
    assert tokens.json["scope"] == "agents:read sms:write"
    holder = application.build_caller({"access_token": str(tokens.json["access_token"])})
    assert (await holder.get("/v1/agents")).status == 200


async def test_a_user_who_cancels_grants_nothing(consent: Consent) -> None:
    response = await consent.person.post(consent.path(), {"decision": "decline"})
    assert response.status == 303
    assert parse_redirect(response.location)["error"] == "access_denied"
    assert not await consent.grants()


async def test_the_consent_page_has_strict_security_headers(consent: Consent) -> None:
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
async def test_the_form_may_redirect_to_an_application_on_this_machine(
    consent: Consent, uri: str, reached: str
) -> None:
    await clients.update_client(
        consent.application.runtime.database, consent.application.id, name="App", redirect_uris=[uri]
    )
    page = await consent.person.get(consent.path(redirect_uri=uri))
    assert f"form-action 'self' {reached};" in page.headers["Content-Security-Policy"]


async def test_forms_of_other_sites_and_sessions_grant_nothing(consent: Consent) -> None:
    fields: dict[str, str | list[str]] = {
        "decision": "approve",
        "organization_id": str(consent.application.caller.organization_id),
    }
    for token in ({}, {"csrf_token": ""}, {"csrf_token": "0" * 64}):
        assert (await consent.person.send(consent.path(), {**fields, **token})).status == 403
    consent.person.headers["Origin"] = "https://evil.example.com"
    assert (await consent.person.post(consent.path(), fields)).status == 403
    assert not await consent.grants()


async def test_a_request_without_a_valid_redirect_shows_an_error_page(consent: Consent) -> None:
    for changes in (
        {"client_id": "no agent"},
        {"redirect_uri": "https://evil.example.com/cb"},
        {"redirect_uri": None},
        {"state": "a\0b"},
    ):
        for response in (await consent.person.get(consent.path(**changes)), await consent.allow(**changes)):
            assert response.status == 400
            assert "Location" not in response.headers
            assert "This application cannot be connected" in response.html
            assert "evil.example.com" not in response.html
    assert not await consent.grants()


async def test_an_invalid_request_is_redirected_to_the_application_after_sign_in(consent: Consent) -> None:
    for changes, error in (({"scope": "everything"}, "invalid_scope"), ({"state": None}, "invalid_request")):
        redirect = parse_redirect((await consent.person.get(consent.path(**changes))).location)
        assert (redirect["error"], redirect["iss"]) == (error, consent.application.issuer)
        assert parse_redirect((await consent.allow(**changes)).location)["error"] == error
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


async def test_a_foreign_organization_cannot_be_chosen(consent: Consent, stranger: Caller) -> None:
    refused = await consent.allow(stranger.organization_id)
    assert refused.status == 400
    assert "not a member" in refused.html
    for made_up in ("", "x", "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c99"):
        response = await consent.person.post(consent.path(), {"decision": "approve", "organization_id": made_up})
        assert response.status == 400
    assert not await consent.grants()


async def test_a_user_without_an_organization_can_only_cancel(application: Application, people: People) -> None:
    consent = Consent(application, await people.join(None))
    page = await consent.person.get(consent.path())
    assert "You do not belong to an organization yet" in page.html
    assert 'value="approve"' not in page.html
    assert (await consent.allow()).status == 400


async def test_a_member_cannot_grant_owner_scopes(consent: Consent, people: People, caller: Caller) -> None:
    application, scope = consent.application, "calls:read phone-numbers:write webhooks:write"
    page = (await consent.person.get(consent.path(scope=scope))).html
    assert "does not get <code>phone-numbers:write</code> and <code>webhooks:write</code>" in page
    assert "purchase, update, release numbers" not in page
    assert "Allow" not in (await consent.person.get(consent.path(scope="webhooks:write"))).html, (
        "nothing is left to allow"
    )
    tokens = await application.redeem(parse_redirect((await consent.allow(scope=scope)).location)["code"])
    assert tokens.json["scope"] == "calls:read", "which tells the application"
    assert parse_redirect((await consent.allow(scope="webhooks:write")).location)["error"] == "access_denied"
    owner = Consent(application, await people.join(caller.organization_id))
    assert "does not get" not in (await owner.person.get(owner.path(scope=scope))).html
    tokens = await application.redeem(parse_redirect((await owner.allow(scope=scope)).location)["code"])
    assert set(str(tokens.json["scope"]).split()) == set(scope.split())


async def test_a_demoted_owners_applications_lose_owner_scopes(
    consent: Consent, people: People, caller: Caller
) -> None:
    first, second = await people.join(caller.organization_id), await people.join(caller.organization_id)
    owner, application = Consent(consent.application, first), consent.application
    tokens = await application.redeem(
        parse_redirect((await owner.allow(scope="calls:read webhooks:write")).location)["code"]
    )
    holder = application.build_caller({"access_token": str(tokens.json["access_token"])})
    assert (await second.post(f"/dashboard/team/{first.user_id}/role", {"role": "builder"})).status == 303
    assert (await holder.post("/v1/webhook-endpoints", {"url": "https://example.com/hooks"})).status == 403
    assert (await holder.get("/v1/calls")).status == 200


async def test_a_signed_out_user_returns_to_the_request_after_sign_in(consent: Consent) -> None:
    path = consent.path()
    consent.person.headers["Referer"] = f"http://localhost{path}"
    consent.person.client.cookie_jar = None
    response = await consent.person.send(path, {"decision": "approve"})
    assert (
        response.location.startswith("/dashboard/sign-in?after=/oauth/authorize?")
        or "after=%2Foauth%2Fauthorize" in response.location
    )


async def test_application_names_are_escaped(consent: Consent) -> None:
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
    holder = application.build_caller(await consent.obtain_tokens())
    assert (await holder.get("/v1/agents")).status == 200
    path = f"{page}/{application.id}/{consent.person.user_id}/disconnect"
    assert "Calendar sync" in (await consent.person.get(page)).html
    colleague, foreigner = (
        await people.join(caller.organization_id, role="builder"),
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
    assert ("oauth_grant.revoked") in {
        action for _, action, _ in await people.list_audit_entries(caller.organization_id)
    }


async def test_the_audit_log_names_the_user_and_the_application(
    consent: Consent, people: People, caller: Caller
) -> None:
    response = await consent.application.redeem(
        parse_redirect((await consent.allow(scope="agents:write")).location)["code"]
    )
    holder = consent.application.build_caller({"access_token": str(response.json["access_token"])})
    assert (await holder.post("/v1/agents", {"name": "Made by an application"})).status == 201
    owner = await people.join(caller.organization_id)
    assert (
        f"{consent.person.email} via Calendar sync</a>"
        in (await owner.get("/dashboard/audit?action=agent.created")).html
    )


async def test_removing_a_member_revokes_their_applications_at_once(
    consent: Consent, people: People, caller: Caller
) -> None:
    holder = consent.application.build_caller(await consent.obtain_tokens())
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
    response = await admin.post(f"{start}/new", {"name": "Fresh", "redirect_uris": uris, "public": "false"})
    assert response.status == 200
    client_id, secret = re.findall(r'<code id="client-(?:id|secret)">([^<]+)</code>', response.html)
    (row,) = [
        client
        for client in await clients.list_clients(consent.application.runtime.database)
        if client.client_id == client_id
    ]
    assert row.redirect_uris == ["https://new.example.com/cb", "http://localhost:3000/cb"]
    new_consent = Consent(consent.application, consent.person)
    new_consent.application.client_id, new_consent.application.secret, new_consent.application.id = (
        client_id,
        secret,
        row.id,
    )
    new_consent.application.redirect_uri = "https://new.example.com/cb"
    tokens = await new_consent.obtain_tokens()
    listing, editing = await admin.get(start), await admin.get(f"{start}/{row.id}")
    assert "https://new.example.com/cb\nhttp://localhost:3000/cb" in editing.html
    assert client_id in listing.html
    assert secret not in listing.html + editing.html, "it is shown once"

    refused = await admin.post(f"{start}/{row.id}", {"name": "Fresh", "redirect_uris": "https://evil.example.com/*"})
    assert refused.status == 422
    assert "is not a redirect URI" in refused.html
    saved = await admin.post(f"{start}/{row.id}", {"name": "Renamed", "redirect_uris": "https://new.example.com/cb"})
    assert saved.location == f"{start}/{row.id}"
    rotated = await admin.post(f"{start}/{row.id}/rotate-secret")
    new_secret = re.findall(r'<code id="client-secret">([^<]+)</code>', rotated.html)[0]
    assert (await new_consent.application.refresh(tokens["refresh_token"])).status == 401
    new_consent.application.secret = new_secret
    assert (await new_consent.application.refresh(tokens["refresh_token"])).status == 200
    assert (await admin.post(f"{start}/{row.id}/delete")).location == start
    assert (await new_consent.application.build_caller(tokens).get("/v1/agents")).status == 401
    assert (await admin.get(f"{start}/{row.id}")).status == 404
    public = await admin.post(f"{start}/new", {"name": "Public client", "redirect_uris": uris, "public": "true"})
    assert "client-secret" not in public.html


async def test_only_superadmins_reach_the_registration_of_applications(
    consent: Consent, people: People, caller: Caller
) -> None:
    owner, start = await people.join(caller.organization_id), "/dashboard/oauth-clients"
    client_page = f"{start}/{consent.application.id}"
    assert "OAuth clients" not in (await owner.get("/dashboard")).html
    for path in (start, f"{start}/new", client_page):
        assert (await owner.get(path)).status == 403
    for path in (f"{start}/new", client_page, f"{client_page}/rotate-secret", f"{client_page}/delete"):
        assert (await owner.post(path, {"name": "Mine", "redirect_uris": "https://evil.example.com/"})).status == 403
    (row,) = [
        client
        for client in await clients.list_clients(consent.application.runtime.database)
        if client.id == consent.application.id
    ]
    assert (row.name, row.redirect_uris) == ("Calendar sync", ["https://app.example.com/cb"])
