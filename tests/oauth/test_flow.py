"""The authorization code flow from the application's side."""

import base64
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from oauthlib.oauth2 import WebApplicationClient
from switchboard.resources.identity.authentication import get_prefix
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import Consent

from tests.fixtures.app import Client
from tests.fixtures.oauth import PROOF, VERIFIER, Application, parse_redirect


class LibraryUser:
    """Application whose requests and responses go through an independent client library."""

    def __init__(self, application: Application, http: Client, *, basic: bool) -> None:
        self.application, self._http, self._basic = application, http, basic
        self.library = WebApplicationClient(application.client_id)

    async def ask(self, scope: list[object], state: str) -> str:
        """Approve, and parse the redirect; return the verifier of the request's proof."""
        verifier = self.library.create_code_verifier(64)
        challenge = self.library.create_code_challenge(verifier, "S256")
        uri = self.library.prepare_request_uri(
            f"{self.application.issuer}/oauth/authorize",
            redirect_uri=self.application.redirect_uri,
            scope=scope,
            state=state,
            code_challenge=challenge,
            code_challenge_method="S256",
        )
        owner_fields = {"user_id": self.application.user_id, "organization_id": self.application.caller.organization_id}
        location = await consent.approve_request(
            self.application.runtime.database, self.application.issuer, parse_qsl(urlsplit(uri).query), **owner_fields
        )
        self.library.parse_request_uri_response(location, state=state)
        return str(verifier)

    async def post(self, path: str, body: str) -> str:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._basic:
            pair = f"{self.application.client_id}:{self.application.secret}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        response = await self._http.post(path, data=body, headers=headers)
        assert response.status_code == 200
        assert response.headers["Cache-Control"] == "no-store"
        return str(await response.get_data(as_text=True))

    @property
    def secret(self) -> dict[str, Any]:
        return {} if self._basic else {"client_secret": self.application.secret}

    @property
    def identity(self) -> dict[str, Any]:
        return {} if self._basic else {"client_id": self.application.client_id, **self.secret}


@pytest.mark.parametrize("basic", [False, True])
async def test_a_client_library_completes_the_flow(
    application: Application, client: Client, monkeypatch: pytest.MonkeyPatch, basic: bool
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    user = LibraryUser(application, client, basic=basic)
    library = user.library
    verifier = await user.ask(["agents:read", "calls:read"], state="opaque & /+%?=state")
    body = library.prepare_request_body(
        code=library.code,
        redirect_uri=application.redirect_uri,
        include_client_id=not basic,
        code_verifier=verifier,
        **user.secret,
    )
    token = library.parse_request_body_response(await user.post("/api/oauth/token", body))
    assert token["expires_in"] == 3600
    assert sorted(token.scopes) == ["agents:read", "calls:read"]
    uri, headers, _ = library.add_token("https://x.example/v1/agents", headers={})
    assert (await client.get(urlsplit(uri).path, headers=headers)).status_code == 200

    body = library.prepare_refresh_body(refresh_token=token["refresh_token"], **user.identity)
    again = library.parse_request_body_response(await user.post("/api/oauth/token", body))
    assert again["refresh_token"] != token["refresh_token"]
    _, _, body = library.prepare_token_revocation_request(
        f"{application.issuer}/api/oauth/revoke", again["refresh_token"], **user.identity
    )
    await user.post("/api/oauth/revoke", body)
    _, headers, _ = library.add_token("https://x.example/v1/agents", headers={})
    assert (await client.get("/v1/agents", headers=headers)).status_code == 401


async def test_responses_have_the_specified_fields(application: Application) -> None:
    redirect = await application.approve(scope="calls:read agents:read", state="s 1")
    assert set(redirect) == {"code", "state", "iss"}
    assert (redirect["state"], redirect["iss"]) == ("s 1", application.issuer)
    tokens = await application.redeem(redirect["code"])
    assert tokens.status == 200
    assert set(tokens.json) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (tokens.json["token_type"], tokens.json["expires_in"], tokens.json["scope"]) == (
        "Bearer",
        3600,
        "agents:read calls:read",
    )
    assert get_prefix(str(tokens.json["access_token"])) == "svca_"
    assert get_prefix(str(tokens.json["refresh_token"])) == "svcr_"
    assert (tokens.headers["Cache-Control"], tokens.headers["Pragma"]) == ("no-store", "no-cache")
    refreshed = await application.refresh(tokens.json["refresh_token"])
    assert set(refreshed.json) == set(tokens.json)
    assert refreshed.json["scope"] == tokens.json["scope"]


async def test_a_public_application_is_authenticated_by_its_verifier(public_application: Application) -> None:
    tokens = await public_application.obtain_tokens(**PROOF)
    assert (await public_application.build_caller(tokens).get("/v1/agents")).status == 200
    assert (await public_application.refresh(tokens["refresh_token"])).status == 200


async def test_the_consent_request_has_name_address_and_scopes(application: Application) -> None:
    request = await consent.examine_request(
        application.runtime.database, application.issuer, application.request(scope="sms:write agents:read agents:read")
    )
    assert request == Consent("Calendar sync", "https://app.example.com/cb", ("agents:read", "sms:write"))


async def test_a_user_who_declines_grants_nothing(application: Application) -> None:
    location = await consent.decline_request(application.runtime.database, application.issuer, application.request())
    redirect = parse_redirect(location)
    assert location.startswith("https://app.example.com/cb?")
    assert (redirect["error"], redirect["state"], redirect["iss"]) == ("access_denied", "s-1", application.issuer)
    assert "code" not in redirect


async def test_a_refresh_may_narrow_the_scopes_of_its_access_token(application: Application) -> None:
    tokens = await application.obtain_tokens(scope="agents:read contacts:read")
    narrowed = await application.refresh(tokens["refresh_token"], scope="agents:read")
    assert narrowed.json["scope"] == "agents:read"
    holder = application.build_caller({"access_token": str(narrowed.json["access_token"])})
    assert (await holder.get("/v1/agents")).status == 200
    assert (await holder.get("/v1/contacts")).status == 403
    whole = await application.refresh(narrowed.json["refresh_token"])
    assert whole.json["scope"] == "agents:read contacts:read"


async def test_metadata_describe_the_server(application: Application, client: Client) -> None:
    response = await client.get("/.well-known/oauth-authorization-server")
    metadata = json.loads(await response.get_data(as_text=True))
    assert response.status_code == 200
    assert metadata["issuer"] == application.issuer
    assert metadata["response_types_supported"] == ["code"]
    assert metadata["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    for name in ("token_endpoint", "revocation_endpoint"):
        path = metadata[name].removeprefix(application.issuer)
        assert (await client.post(path, data="{}", headers={"Content-Type": "application/json"})).status_code == 401
    api = json.loads(await (await client.get("/openapi.json")).get_data(as_text=True))
    flow = api["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert (flow["authorizationUrl"], flow["tokenUrl"]) == (
        metadata["authorization_endpoint"],
        metadata["token_endpoint"],
    )
    assert set(flow["scopes"]) == set(metadata["scopes_supported"])
    assert api["paths"]["/v1/agents"]["get"]["security"] == [{"bearer": []}, {"oauth2": ["agents:read"]}]


async def test_an_application_with_a_secret_may_also_send_a_proof(application: Application) -> None:
    code = await application.obtain_code(**PROOF)
    assert (await application.redeem(code, code_verifier=VERIFIER)).status == 200
