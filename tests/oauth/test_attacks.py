"""Attacks on the authorization code flow (RFC 9700), each refused, with issued tokens revoked."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select, update
from switchboard.foundation.audit import AuditEntry
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import RedirectedError, RequestRefused
from switchboard.resources.oauth.models import OAuthGrant, OAuthToken
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller, Client
from tests.fixtures.oauth import (
    CHALLENGE,
    PROOF,
    VERIFIER,
    Application,
    make_user,
    parse_redirect,
    register_application,
)


@pytest.fixture
async def other_application(runtime: Runtime, client: Client, caller: Caller) -> Application:
    """Another application with a secret."""
    return await register_application(runtime, client, caller, await make_user(runtime, caller.organization_id))


def check_refusal(response: ApiResponse, error: str, status: int = 400) -> None:
    assert (response.status, response.json["error"]) == (status, error)
    assert set(response.json) == {"error", "error_description"}
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Type"] == "application/json"


async def is_live(application: Application, tokens: dict[str, str]) -> bool:
    return (await application.build_caller(tokens).get("/v1/agents")).status == 200


async def read_redirected_error(application: Application, **changes: str | None) -> dict[str, str]:
    """Return the error that is redirected to the application."""
    with pytest.raises(RedirectedError) as error_info:
        await consent.examine_request(application.runtime.database, application.issuer, application.request(**changes))
    assert error_info.value.location.startswith(f"{application.redirect_uri}?")
    return parse_redirect(error_info.value.location)


async def let_time_pass(application: Application, **seconds: int) -> None:
    """Let time pass for everything of the application."""
    async with application.runtime.database.system() as session:
        own_grants = select(OAuthGrant.id).where(col(OAuthGrant.client_id) == application.id)
        for table, column in (
            (OAuthGrant, col(OAuthGrant.id).in_(own_grants)),
            (OAuthToken, col(OAuthToken.grant_id).in_(own_grants)),
        ):
            moments = [
                name
                for name in ("expires_at", "access_expires_at", "used_at", "redeemed_at")
                if name in table.model_fields
            ]
            await session.exec(
                update(table)
                .where(column)
                .values({name: getattr(table, name) - timedelta(**seconds) for name in moments})
            )


async def test_a_replayed_code_revokes_its_tokens(application: Application) -> None:
    code = await application.obtain_code()
    first = await application.redeem(code)
    tokens = {name: str(value) for name, value in first.json.items()}
    assert await is_live(application, tokens)
    check_refusal(await application.redeem(code), "invalid_grant")
    assert not await is_live(application, tokens)
    check_refusal(await application.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_a_replayed_code_revokes_refreshed_tokens_too(application: Application) -> None:
    code = await application.obtain_code()
    first = await application.redeem(code)
    second = await application.refresh(first.json["refresh_token"])
    check_refusal(await application.redeem(code), "invalid_grant")
    assert not await is_live(application, {"access_token": str(second.json["access_token"])})
    check_refusal(await application.refresh(second.json["refresh_token"]), "invalid_grant")
    async with application.runtime.database.write(application.caller.organization_id) as session:
        entries = (await session.exec(select(AuditEntry).where(col(AuditEntry.action).startswith("oauth_grant")))).all()
    assert [(entry.actor, entry.action) for entry in sorted(entries, key=lambda entry: entry.id)] == [
        (f"user:{application.user_id}", "oauth_grant.created"),
        ("system", "oauth_grant.revoked"),
    ]


async def test_another_application_cannot_redeem_a_code(
    application: Application, other_application: Application
) -> None:
    code = await application.obtain_code()
    check_refusal(await other_application.redeem(code), "invalid_grant")
    tokens = await application.redeem(code)
    assert tokens.status == 200
    check_refusal(await other_application.redeem(code), "invalid_grant")
    assert await is_live(application, {"access_token": str(tokens.json["access_token"])}), (
        "a stranger cannot end it either"
    )


async def test_another_application_cannot_use_a_refresh_token(
    application: Application, other_application: Application
) -> None:
    tokens = await application.obtain_tokens()
    check_refusal(await other_application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert (await application.refresh(tokens["refresh_token"])).status == 200
    await let_time_pass(application, seconds=60)
    check_refusal(await other_application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert await is_live(application, tokens)


async def test_another_application_cannot_revoke_a_token(
    application: Application, other_application: Application
) -> None:
    tokens = await application.obtain_tokens()
    for name in ("access_token", "refresh_token"):
        check_refusal(await other_application.revoke(tokens[name]), "invalid_grant")
    assert await is_live(application, tokens)


async def test_a_code_requires_the_redirect_uri_of_its_request(application: Application) -> None:
    for redirect_uri in (
        None,
        "https://app.example.com/cb2",
        "https://app.example.com/cb/",
        "https://evil.example.com/cb",
    ):
        check_refusal(
            await application.redeem(await application.obtain_code(), redirect_uri=redirect_uri), "invalid_grant"
        )


async def test_a_code_expires_after_ten_minutes(application: Application) -> None:
    code = await application.obtain_code()
    await let_time_pass(application, minutes=9, seconds=55)
    assert (await application.redeem(code)).status == 200
    late = await application.obtain_code()
    await let_time_pass(application, minutes=10)
    check_refusal(await application.redeem(late), "invalid_grant")


async def test_a_proof_cannot_be_omitted_swapped_or_forged(application: Application) -> None:
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
        check_refusal(await application.redeem(await application.obtain_code(**proof), code_verifier=verifier), error)


async def test_a_public_application_requires_s256(public_application: Application) -> None:
    proofs: list[dict[str, str]] = [
        {},
        {"code_challenge": CHALLENGE},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"code_challenge": CHALLENGE, "code_challenge_method": "s256"},
        {"code_challenge_method": "S256"},
        {"code_challenge": "short", "code_challenge_method": "S256"},
    ]
    for proof in proofs:
        assert (await read_redirected_error(public_application, **proof))["error"] == "invalid_request", proof


async def test_an_application_with_a_secret_cannot_use_plain(application: Application) -> None:
    plain = {"code_challenge": VERIFIER, "code_challenge_method": "plain"}
    for proof in (plain, {"code_challenge": CHALLENGE}, {"code_challenge_method": "S256"}):
        assert (await read_redirected_error(application, **proof))["error"] == "invalid_request", proof


async def test_a_reused_refresh_token_fails_and_later_revokes_its_family(application: Application) -> None:
    tokens = await application.obtain_tokens()
    refreshed = await application.refresh(tokens["refresh_token"])
    newest = {name: str(value) for name, value in refreshed.json.items()}
    check_refusal(await application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert await is_live(application, newest), "within ten seconds it is a retry"
    await let_time_pass(application, seconds=11)
    check_refusal(await application.refresh(tokens["refresh_token"]), "invalid_grant")
    assert not await is_live(application, newest)
    check_refusal(await application.refresh(newest["refresh_token"]), "invalid_grant")


async def test_a_refresh_token_lasts_thirty_days_from_its_last_use(application: Application) -> None:
    tokens = await application.obtain_tokens()
    await let_time_pass(application, days=29)
    refreshed = await application.refresh(tokens["refresh_token"])
    assert refreshed.status == 200
    await let_time_pass(application, days=29)
    assert (await application.refresh(refreshed.json["refresh_token"])).status == 200
    unused = await application.obtain_tokens()
    await let_time_pass(application, days=30)
    check_refusal(await application.refresh(unused["refresh_token"]), "invalid_grant")


async def test_an_access_token_lasts_an_hour(application: Application) -> None:
    tokens = await application.obtain_tokens()
    await let_time_pass(application, hours=1)
    assert not await is_live(application, tokens)
    assert (await application.refresh(tokens["refresh_token"])).status == 200


async def test_a_refresh_cannot_widen_the_scopes(application: Application) -> None:
    tokens = await application.obtain_tokens(scope="agents:read calls:read")
    for scope in ("agents:read agents:write", "agents:write", "contacts:read", "everything", "AGENTS:READ", "agents:*"):
        check_refusal(await application.refresh(tokens["refresh_token"], scope=scope), "invalid_scope")
    assert (await application.refresh(tokens["refresh_token"])).json["scope"] == "agents:read calls:read"


async def test_a_scope_parameter_cannot_widen_a_code(application: Application) -> None:
    response = await application.redeem(
        await application.obtain_code(scope="agents:read"), scope="agents:read agents:write"
    )
    assert response.json["scope"] == "agents:read"
    holder = application.build_caller({"access_token": str(response.json["access_token"])})
    assert (await holder.post("/v1/agents", {"name": "Mine"})).status == 403


async def test_an_invalid_request_is_redirected_with_its_state_and_the_issuer(application: Application) -> None:
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
        redirect = await read_redirected_error(application, **changes)
        assert (redirect["error"], redirect["iss"]) == (error, application.issuer), changes
        assert redirect.get("state") == (changes["state"] or None if "state" in changes else "s-1")
        assert "code" not in redirect


async def test_a_request_without_a_known_application_and_redirect_uri_is_not_redirected(
    application: Application,
) -> None:
    requests: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": "no agent"},
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


async def test_a_repeated_parameter_is_refused(application: Application) -> None:
    for name in ("client_id", "redirect_uri", "scope", "state", "response_type", "code_challenge"):
        parameters = [*application.request(code_challenge=CHALLENGE, code_challenge_method="S256"), (name, "x")]
        with pytest.raises(RequestRefused, match="more than once"):
            await consent.examine_request(application.runtime.database, application.issuer, parameters)


async def test_only_members_of_an_organization_can_grant_access_to_it(
    application: Application, stranger: Caller
) -> None:
    parts = application.runtime.database, application.issuer, application.request()
    with pytest.raises(RequestRefused, match="not a member"):
        await consent.approve_request(*parts, user_id=application.user_id, organization_id=stranger.organization_id)
    superadmin = await make_user(application.runtime, superadmin=True)
    with pytest.raises(RequestRefused, match="not a member"):
        await consent.approve_request(*parts, user_id=superadmin, organization_id=stranger.organization_id)


async def test_one_of_a_hundred_concurrent_redemptions_succeeds(application: Application) -> None:
    code = await application.obtain_code()
    responses = await asyncio.gather(*(application.redeem(code) for _ in range(100)))
    assert sorted(response.status for response in responses) == [200, *[400] * 99]
    success = next(response for response in responses if response.status == 200)
    assert not await is_live(application, {"access_token": str(success.json["access_token"])}), (
        "and what it gave is ended"
    )


async def test_one_of_a_hundred_concurrent_refreshes_succeeds_and_stays_valid(application: Application) -> None:
    tokens = await application.obtain_tokens()
    responses = await asyncio.gather(*(application.refresh(tokens["refresh_token"]) for _ in range(100)))
    assert sorted(response.status for response in responses) == [200, *[400] * 99]
    success = next(response for response in responses if response.status == 200)
    assert await is_live(application, {"access_token": str(success.json["access_token"])})
    assert (await application.refresh(success.json["refresh_token"])).status == 200


async def test_a_concurrent_redemption_and_disconnection_leave_no_valid_token(
    application: Application, runtime: Runtime
) -> None:
    code = await application.obtain_code()
    tokens = await application.obtain_tokens()
    *_, response = await asyncio.gather(
        application.revoke(tokens["access_token"]),
        application.redeem(code),
        application.refresh(tokens["refresh_token"]),
    )
    if response.status == 200:
        assert not await is_live(application, {"access_token": str(response.json["access_token"])})
        check_refusal(await application.refresh(response.json["refresh_token"]), "invalid_grant")


async def test_an_invented_refresh_token_is_refused(application: Application) -> None:
    for token in ("", "svcr_short", "svcr_" + "0" * 49, "svc_live_" + "0" * 49):
        check_refusal(await application.refresh(token), "invalid_request" if not token else "invalid_grant")


async def test_access_and_refresh_tokens_are_not_interchangeable(application: Application) -> None:
    tokens = await application.obtain_tokens()
    check_refusal(await application.refresh(tokens["access_token"]), "invalid_grant")
    assert not await is_live(application, {"access_token": tokens["refresh_token"]})
    assert await is_live(application, tokens)
