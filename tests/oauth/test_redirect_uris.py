"""Redirect URIs: matched character by character, and registered only if they cannot be misread."""

import pytest
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.oauth import clients, consent
from switchboard.resources.oauth.consent import RequestRefused
from switchboard.runtime import Runtime

from tests.fixtures.oauth import Application, parse_redirect
from tests.fixtures.redirect_uris import REDIRECT_URI_TRICKS

MISREAD = [
    "http://app.example.com/cb",
    "http://localhost.example.com/cb",
    "http://127.0.0.1.example.com/cb",
    "http://localhost@evil.example.com/cb",
    "http://[::2]/cb",
    "HTTPS://app.example.com/cb",
    "https:app.example.com/cb",
    "https:///cb",
    "https://",
    "https://:443/cb",
    "https://app.example.com:0/cb",
    "https://app.example.com:99999/cb",
    "https://app.example.com:x/cb",
    "https://[::1/cb",
    "https://user@app.example.com/cb",
    "https://user:pass@app.example.com/cb",
    "https://app.example.com/cb#",
    "https://app.example.com/cb#part",
    "https://*.example.com/cb",
    "https://app.example.com/*",
    "https://app.example.com\\@evil.example.com/cb",
    "https://app.example.com/cb?code=mine",
    "https://app.example.com/cb?a=1&state=mine",
    "https://app.example.com/cb?iss=mine",
    "https://app.example.com/c b",
    "https://app.example.com/cb\n",
    "https://аpp.example.com/cb",
    "javascript:alert(1)",
    "app.example.com/cb",
    "//app.example.com/cb",
    "/cb",
    "",
    "https://app.example.com/" + "x" * 2000,
    "https://a;script-src/cb",
    "https://a'b/cb",
    "https://a,b.example/cb",
    "https://%61pp.example.com/cb",
]


async def test_a_request_is_not_redirected_to_an_unregistered_uri(application: Application) -> None:
    for trick in REDIRECT_URI_TRICKS:
        with pytest.raises(RequestRefused):
            await consent.examine_request(
                application.runtime.database, application.issuer, application.request(redirect_uri=trick)
            )
        for changes in ({"scope": "everything"}, {"response_type": "token"}, {"state": None}):
            with pytest.raises(RequestRefused):
                await consent.decline_request(
                    application.runtime.database, application.issuer, application.request(redirect_uri=trick, **changes)
                )


async def test_an_ambiguous_redirect_uri_cannot_be_registered(runtime: Runtime) -> None:
    for uri in MISREAD:
        with pytest.raises(IdentityError, match="is not a redirect URI"):
            await clients.register_client(
                runtime.database, name="App", redirect_uris=["https://app.example.com/cb", uri]
            )


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example.com",
        "https://app.example.com:8443/a/b;v=1?tenant=a%20b&flag",
        "https://[2001:db8::1]/cb",
        "http://localhost:3000/cb",
        "http://127.0.0.1/cb",
        "http://[::1]:8080/cb",
    ],
)
async def test_a_redirect_keeps_the_uri_and_its_parameters(application: Application, uri: str) -> None:
    await clients.update_client(application.runtime.database, application.id, name="App", redirect_uris=[uri])
    application.redirect_uri = uri
    redirect = await application.approve()
    assert (redirect["state"], redirect.get("tenant")) == ("s-1", "a b" if "tenant" in uri else None)
    assert (await application.redeem(redirect["code"])).status == 200


async def test_a_removed_redirect_uri_is_no_longer_used(application: Application) -> None:
    await clients.update_client(
        application.runtime.database, application.id, name="App", redirect_uris=["https://app.example.com/new"]
    )
    with pytest.raises(RequestRefused):
        await consent.decline_request(application.runtime.database, application.issuer, application.request())
    application.redirect_uri = "https://app.example.com/new"
    location = await consent.decline_request(application.runtime.database, application.issuer, application.request())
    assert parse_redirect(location)["error"] == "access_denied"


@pytest.mark.parametrize(
    ("name", "uris"),
    [
        ("App", []),
        ("App", [f"https://app.example.com/{number}" for number in range(21)]),
        (" ", ["https://a.example/"]),
        ("a\nb", ["https://a.example/"]),
    ],
)
async def test_an_application_requires_a_name_and_a_redirect_uri(runtime: Runtime, name: str, uris: list[str]) -> None:
    with pytest.raises(IdentityError, match="needs a"):
        await clients.register_client(runtime.database, name=name, redirect_uris=uris)
