"""Attacks on the authorization code flow (RFC 9700), each refused, and reverted if something had been issued."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select, update
from switchboard.foundation.audit import AuditEntry
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import RedirectedError, RequestRefused
from switchboard.resources.oauth.models import OAuthGrant, OAuthToken
from switchboard.runtime import Runtime

from tests.fixtures.app import Answer, Caller, Client
from tests.fixtures.oauth import CHALLENGE, PROOF, VERIFIER, Application, answered, make_user, registered


@pytest.fixture
async def another(runtime: Runtime, client: Client, caller: Caller) -> Application:
    """Another application with a secret."""
    return await registered(runtime, client, caller, await make_user(runtime, caller.organization_id))


def refused(answer: Answer, error: str, status: int = 400) -> None:
    assert (answer.status, answer.json["error"]) == (status, error)
    assert set(answer.json) == {"error", "error_description"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"] == "application/json"


async def is_live(application: Application, tokens: dict[str, str]) -> bool:
    return (await application.holder(tokens).get("/v1/agents")).status == 200


async def sent_back(application: Application, **changes: str | None) -> dict[str, str]:
    """Return the error that is redirected to the application."""
    with pytest.raises(RedirectedError) as caught:
        await consent.examine_request(application.runtime.database, application.issuer, application.request(**changes))
    assert caught.value.location.startswith(f"{application.redirect_uri}?")
    return answered(caught.value.location)


async def aged(application: Application, **seconds: int) -> None:
    """Let time pass for everything of the application."""
    async with application.runtime.database.system() as session:
        mine = select(OAuthGrant.id).where(col(OAuthGrant.client_id) == application.id)
        for table, which in (
            (OAuthGrant, col(OAuthGrant.id).in_(mine)),
            (OAuthToken, col(OAuthToken.grant_id).in_(mine)),
        ):
            moments = [
                name
                for name in ("expires_at", "access_expires_at", "used_at", "redeemed_at")
                if name in table.model_fields
            ]
            await session.exec(
                update(table)
                .where(which)
                .values({name: getattr(table, name) - timedelta(**seconds) for name in moments})
            )


async def test_a_code_works_once_and_its_replay_ends_what_it_gave(application: Application) -> None:
    code = await application.code()
    first = await application.redeem(code)
    tokens = {name: str(value) for name, value in first.json.items()}
    assert await is_live(application, tokens)
    refused(await application.redeem(code), "invalid_grant")
    assert not await is_live(application, tokens)
    refused(await application.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_a_replay_ends_what_was_refreshed_meanwhile_too(application: Application) -> None:
    code = await application.code()
    first = await application.redeem(code)
    second = await application.refresh(first.json["refresh_token"])
    refused(await application.redeem(code), "invalid_grant")
    assert not await is_live(application, {"access_token": str(second.json["access_token"])})
    refused(await application.refresh(second.json["refresh_token"]), "invalid_grant")
    async with application.runtime.database.tenant(application.caller.organization_id) as session:
        entries = (await session.exec(select(AuditEntry).where(col(AuditEntry.action).startswith("oauth_grant")))).all()
    assert [(entry.actor, entry.action) for entry in sorted(entries, key=lambda entry: entry.id)] == [
        (f"user:{application.user_id}", "oauth_grant.created"),
        ("system", "oauth_grant.revoked"),
    ]


async def test_a_code_is_worth_nothing_to_another_application(application: Application, another: Application) -> None:
    code = await application.code()
    refused(await another.redeem(code), "invalid_grant")
    tokens = await application.redeem(code)
    assert tokens.status == 200
    refused(await another.redeem(code), "invalid_grant")
    assert await is_live(application, {"access_token": str(tokens.json["access_token"])}), (
        "a stranger cannot end it either"
    )


async def test_a_refresh_token_is_worth_nothing_to_another_application(
    application: Application, another: Application
) -> None:
    tokens = await application.tokens()
    refused(await another.refresh(tokens["refresh_token"]), "invalid_grant")
    assert (await application.refresh(tokens["refresh_token"])).status == 200
    await aged(application, seconds=60)
    refused(await another.refresh(tokens["refresh_token"]), "invalid_grant")
    assert await is_live(application, tokens)


async def test_another_application_cannot_give_ones_token_back(application: Application, another: Application) -> None:
    tokens = await application.tokens()
    for name in ("access_token", "refresh_token"):
        refused(await another.revoke(tokens[name]), "invalid_grant")
    assert await is_live(application, tokens)


async def test_a_code_is_redeemed_with_the_redirect_uri_it_was_sent_to(application: Application) -> None:
    for redirect_uri in (
        None,
        "https://app.example.com/cb2",
        "https://app.example.com/cb/",
        "https://evil.example.com/cb",
    ):
        refused(await application.redeem(await application.code(), redirect_uri=redirect_uri), "invalid_grant")


async def test_a_code_expires_after_ten_minutes(application: Application) -> None:
    code = await application.code()
    await aged(application, minutes=9, seconds=55)
    assert (await application.redeem(code)).status == 200
    late = await application.code()
    await aged(application, minutes=10)
    refused(await application.redeem(late), "invalid_grant")


async def test_a_proof_cannot_be_left_out_exchanged_or_made_up(application: Application) -> None:
    attempts: list[tuple[dict[str, str], str | None, str]] = [
        (PROOF, None, "invalid_request"),
        (PROOF, "another-verifier-of-forty-three-characters-at-least", "invalid_grant"),
        (PROOF, CHALLENGE, "invalid_grant"),
        (PROOF, VERIFIER[:42], "invalid_request"),
        (PROOF, VERIFIER + "!", "invalid_request"),
        (PROOF, "x" * 129, "invalid_request"),
        ({}, VERIFIER, "invalid_request"),
    ]
    for proof, verifier, error in attempts:
        refused(await application.redeem(await application.code(**proof), code_verifier=verifier), error)


async def test_a_public_application_cannot_do_with_less_than_s256(public_application: Application) -> None:
    proofs: list[dict[str, str]] = [
        {},
        {"code_challenge": CHALLENGE},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"code_challenge": CHALLENGE, "code_challenge_method": "s256"},
        {"code_challenge_method": "S256"},
        {"code_challenge": "short", "code_challenge_method": "S256"},
    ]
    for proof in proofs:
        assert (await sent_back(public_application, **proof))["error"] == "invalid_request", proof


async def test_an_application_with_a_secret_cannot_use_plain_either(application: Application) -> None:
    plain = {"code_challenge": VERIFIER, "code_challenge_method": "plain"}
    for proof in (plain, {"code_challenge": CHALLENGE}, {"code_challenge_method": "S256"}):
        assert (await sent_back(application, **proof))["error"] == "invalid_request", proof


async def test_a_used_refresh_token_always_fails_and_later_ends_its_family(application: Application) -> None:
    tokens = await application.tokens()
    fresh = await application.refresh(tokens["refresh_token"])
    newest = {name: str(value) for name, value in fresh.json.items()}
    refused(await application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert await is_live(application, newest), "within ten seconds it is a retry"
    await aged(application, seconds=11)
    refused(await application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert not await is_live(application, newest)
    refused(await application.refresh(newest["refresh_token"]), "invalid_grant")


async def test_a_refresh_token_lasts_thirty_days_from_its_last_use(application: Application) -> None:
    tokens = await application.tokens()
    await aged(application, days=29)
    fresh = await application.refresh(tokens["refresh_token"])
    assert fresh.status == 200
    await aged(application, days=29)
    assert (await application.refresh(fresh.json["refresh_token"])).status == 200
    unused = await application.tokens()
    await aged(application, days=30)
    refused(await application.refresh(unused["refresh_token"]), "invalid_grant")


async def test_an_access_token_lasts_an_hour(application: Application) -> None:
    tokens = await application.tokens()
    await aged(application, hours=1)
    assert not await is_live(application, tokens)
    assert (await application.refresh(tokens["refresh_token"])).status == 200


async def test_a_refresh_cannot_widen_the_scopes(application: Application) -> None:
    tokens = await application.tokens(scope="agents:read calls:read")
    for scope in ("agents:read agents:write", "agents:write", "contacts:read", "everything", "AGENTS:READ", "agents:*"):
        refused(await application.refresh(tokens["refresh_token"], scope=scope), "invalid_scope")
    assert (await application.refresh(tokens["refresh_token"])).json["scope"] == "agents:read calls:read"


async def test_a_scope_at_the_token_endpoint_adds_nothing_to_a_code(application: Application) -> None:
    given = await application.redeem(await application.code(scope="agents:read"), scope="agents:read agents:write")
    assert given.json["scope"] == "agents:read"
    holder = application.holder({"access_token": str(given.json["access_token"])})
    assert (await holder.post("/v1/agents", {"name": "Mine"})).status == 403


async def test_a_faulty_request_is_sent_back_with_its_state_and_the_issuer(application: Application) -> None:
    requests: list[tuple[dict[str, str | None], str]] = [
        ({"state": None}, "invalid_request"),
        ({"state": ""}, "invalid_request"),
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": 'code"\\'}, "unsupported_response_type"),
        ({"response_type": "none"}, "unsupported_response_type"),
        ({"scope": None}, "invalid_scope"),
        ({"scope": " "}, "invalid_scope"),
        ({"scope": "agents:read agents:fly"}, "invalid_scope"),
        ({"scope": "agents:read,calls:read"}, "invalid_scope"),
        ({"scope": "openid"}, "invalid_scope"),
        ({"scope": 'agents:read "\\'}, "invalid_scope"),
    ]
    for changes, error in requests:
        told = await sent_back(application, **changes)
        assert (told["error"], told["iss"]) == (error, application.issuer), changes
        assert told.get("state") == (changes["state"] or None if "state" in changes else "s-1")
        assert "code" not in told


async def test_without_a_known_application_and_address_nobody_is_sent_anywhere(application: Application) -> None:
    requests: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": "nobody"},
        {"client_id": "a\0b"},
        {"client_id": "ü"},
        {"redirect_uri": None},
        {"state": "a\nb"},
        {"scope": "ü"},
    ]
    for changes in requests:
        with pytest.raises(RequestRefused):
            await consent.examine_request(
                application.runtime.database, application.issuer, application.request(**changes)
            )
        with pytest.raises(RequestRefused):
            await consent.decline_request(
                application.runtime.database, application.issuer, application.request(**changes)
            )


async def test_a_parameter_that_comes_twice_is_refused(application: Application) -> None:
    for name in ("client_id", "redirect_uri", "scope", "state", "response_type", "code_challenge"):
        doubled = [*application.request(code_challenge=CHALLENGE, code_challenge_method="S256"), (name, "x")]
        with pytest.raises(RequestRefused, match="more than once"):
            await consent.examine_request(application.runtime.database, application.issuer, doubled)


async def test_only_who_belongs_to_an_organization_grants_access_to_it(
    application: Application, stranger: Caller
) -> None:
    parts = application.runtime.database, application.issuer, application.request()
    with pytest.raises(RequestRefused, match="not a member"):
        await consent.approve_request(*parts, user_id=application.user_id, organization_id=stranger.organization_id)
    superadmin = await make_user(application.runtime, superadmin=True)
    location = await consent.approve_request(*parts, user_id=superadmin, organization_id=stranger.organization_id)
    assert (await application.redeem(answered(location)["code"])).status == 200


async def test_of_a_hundred_redemptions_at_once_one_succeeds(application: Application) -> None:
    code = await application.code()
    answers = await asyncio.gather(*(application.redeem(code) for _ in range(100)))
    assert sorted(answer.status for answer in answers) == [200, *[400] * 99]
    given = next(answer for answer in answers if answer.status == 200)
    assert not await is_live(application, {"access_token": str(given.json["access_token"])}), (
        "and what it gave is ended"
    )


async def test_of_a_hundred_refreshes_at_once_one_succeeds_and_stays(application: Application) -> None:
    tokens = await application.tokens()
    answers = await asyncio.gather(*(application.refresh(tokens["refresh_token"]) for _ in range(100)))
    assert sorted(answer.status for answer in answers) == [200, *[400] * 99]
    given = next(answer for answer in answers if answer.status == 200)
    assert await is_live(application, {"access_token": str(given.json["access_token"])})
    assert (await application.refresh(given.json["refresh_token"])).status == 200


async def test_a_redemption_and_a_disconnection_at_once_leave_nothing_alive(
    application: Application, runtime: Runtime
) -> None:
    code = await application.code()
    tokens = await application.tokens()
    *_, given = await asyncio.gather(
        application.revoke(tokens["access_token"]),
        application.redeem(code),
        application.refresh(tokens["refresh_token"]),
    )
    if given.status == 200:
        assert not await is_live(application, {"access_token": str(given.json["access_token"])})
        refused(await application.refresh(given.json["refresh_token"]), "invalid_grant")


async def test_a_made_up_refresh_token_is_refused(application: Application) -> None:
    for token in ("", "svcr_short", "svcr_" + "0" * 49, "svc_live_" + "0" * 49):
        refused(await application.refresh(token), "invalid_request" if not token else "invalid_grant")


async def test_an_access_token_refreshes_nothing_and_a_refresh_token_opens_nothing(application: Application) -> None:
    tokens = await application.tokens()
    refused(await application.refresh(tokens["access_token"]), "invalid_grant")
    assert not await is_live(application, {"access_token": tokens["refresh_token"]})
    assert await is_live(application, tokens)
