"""Signing in through an OpenID provider: a test server with the protocol and its own key."""

import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import RSAKey
from switchboard.apps.server import app
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.dashboard import People, Person


@dataclass(slots=True)
class Provider:
    """An OpenID provider. `wrong` are claims that its tokens override; `email` is the user who signs in."""

    issuer: str = ""
    email: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "one"}))
    signing_key: RSAKey | None = None
    wrong: dict[str, object] = field(default_factory=dict)
    requests: dict[str, dict[str, str]] = field(default_factory=dict)

    async def metadata(self, request: web.Request) -> web.Response:
        names = ("authorization", "token", "jwks")
        places = {f"{name}_endpoint" if name != "jwks" else "jwks_uri": f"{self.issuer}/{name}" for name in names}
        return web.json_response(
            {
                "issuer": self.wrong.get("name", self.issuer),
                **places,
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def jwks(self, request: web.Request) -> web.Response:
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    def consent(self, url: str) -> str:
        """Act as the browser at the provider: sign in, and return with a code."""
        authorization = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = secrets.token_urlsafe(8)
        self.requests[code] = authorization
        return f"/dashboard/sign-in/callback?{urlencode({'code': code, 'state': authorization['state']})}"

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        authorization = self.requests.pop(str(form["code"]), None)
        challenge = (
            urlsafe_b64encode(hashlib.sha256(str(form.get("code_verifier")).encode()).digest()).rstrip(b"=").decode()
        )
        if (
            authorization is None
            or authorization["code_challenge"] != challenge
            or authorization["redirect_uri"] != form["redirect_uri"]
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        moment = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "1",
            "aud": "switchboard",
            "iat": moment,
            "exp": moment + 60,
            "nonce": authorization["nonce"],
            "email": self.email,
            "email_verified": True,
            **self.wrong,
        }
        header = {"alg": "RS256", "kid": "one"}
        return web.json_response(
            {
                "access_token": "a",
                "token_type": "Bearer",
                "id_token": jwt.encode(header, claims, self.signing_key or self.key),
            }
        )


@asynccontextmanager
async def serve_provider(provider: Provider) -> AsyncIterator[None]:
    application = web.Application()
    application.add_routes(
        [
            web.get("/.well-known/openid-configuration", provider.metadata),
            web.get("/jwks", provider.jwks),
            web.post("/token", provider.token),
        ]
    )
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", int(provider.issuer.rpartition(":")[2])).start()
        yield
    finally:
        await runner.cleanup()


@pytest.fixture
async def provider(unused_tcp_port: int) -> AsyncIterator[Provider]:
    provider = Provider(issuer=f"http://127.0.0.1:{unused_tcp_port}")
    async with serve_provider(provider):
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: Provider) -> Settings:
    return settings.model_copy(update={"oidc_issuer": provider.issuer})


def create_browser(runtime: Runtime) -> Person:
    return Person(UNKNOWN_ID, "", app.create_app(runtime).test_client())  # type: ignore[arg-type]


async def test_a_user_signs_in_and_continues(
    people: People, caller: Caller, runtime: Runtime, provider: Provider
) -> None:
    owner, browser = await people.join(caller.organization_id), create_browser(runtime)
    provider.email = owner.email.upper()
    assert "/dashboard/sign-in/single-sign-on" in (await browser.get("/dashboard/sign-in")).html
    location = (await browser.get("/dashboard/sign-in/single-sign-on?after=/dashboard/team")).location
    assert "code_challenge_method=S256" in location
    back = provider.consent(location)
    assert (await browser.get(back)).location == "/dashboard/team"
    assert owner.email in (await browser.get("/dashboard/team")).html
    assert (await browser.get(back)).status == 422, "a code and its state work once"


async def test_invited_users_join_and_others_are_refused(
    people: People, caller: Caller, runtime: Runtime, provider: Provider
) -> None:
    owner, browser = await people.join(caller.organization_id), create_browser(runtime)
    provider.email = "newcomer@example.com"
    refused = await browser.get(provider.consent((await browser.get("/dashboard/sign-in/single-sign-on")).location))
    assert refused.status == 422
    assert "Ask an owner to invite you" in refused.html
    await owner.post("/dashboard/team", {"email": "newcomer@example.com", "role": "builder"})
    assert (
        await browser.get(provider.consent((await browser.get("/dashboard/sign-in/single-sign-on")).location))
    ).status == 303
    assert (await browser.get("/dashboard")).status == 200
    browser.email = "newcomer@example.com"
    assert (await browser.sign_in("")).status == 422, "no password, no way in by one"


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"exp": 1},
        {"nonce": "another"},
        {"email_verified": False},
        {"email": ""},
        {"email_verified": "true"},
        {"azp": "another-client", "aud": ["switchboard", "another-client"]},
    ],
)
async def test_invalid_claims_are_refused(
    people: People, caller: Caller, runtime: Runtime, provider: Provider, wrong: dict[str, object]
) -> None:
    owner, browser = await people.join(caller.organization_id), create_browser(runtime)
    provider.email, provider.wrong = owner.email, wrong
    refused = await browser.get(provider.consent((await browser.get("/dashboard/sign-in/single-sign-on")).location))
    assert refused.status == 422
    assert (await browser.get("/dashboard")).status == 303


async def test_a_token_with_a_foreign_signature_is_refused(
    people: People, caller: Caller, runtime: Runtime, provider: Provider
) -> None:
    owner, browser = await people.join(caller.organization_id), create_browser(runtime)
    provider.email, provider.signing_key = owner.email, RSAKey.generate_key(2048, parameters={"kid": "one"})
    assert (
        await browser.get(provider.consent((await browser.get("/dashboard/sign-in/single-sign-on")).location))
    ).status == 422


async def test_only_the_browser_that_started_the_sign_in_can_complete_it(
    people: People, caller: Caller, runtime: Runtime, provider: Provider
) -> None:
    owner, browser, victim = await people.join(caller.organization_id), create_browser(runtime), create_browser(runtime)
    provider.email = owner.email
    back = provider.consent((await browser.get("/dashboard/sign-in/single-sign-on")).location)
    assert (await victim.get(back)).status == 422, "nobody is signed in as somebody else by a link"
    await victim.get("/dashboard/sign-in/single-sign-on")
    assert (await victim.get(back)).status == 422
    assert (await browser.get(back.replace("state=", "state=x"))).status == 422
    assert (await browser.get("/dashboard/sign-in/callback")).status == 422


async def test_an_unavailable_or_different_provider_is_reported(runtime: Runtime, provider: Provider) -> None:
    provider.wrong = {"name": "https://evil.example"}
    response = await create_browser(runtime).get("/dashboard/sign-in/single-sign-on")
    assert response.status == 422
    assert "reports another issuer" in response.html
