"""The authorization code flow from the application's side."""

import base64
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from oauthlib.oauth2 import WebApplicationClient
from switchboard.resources.identity.credentials import get_prefix
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import Consent

from tests.fixtures.app import Client
from tests.fixtures.oauth import PROOF, VERIFIER, Application, answered


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
        whose = {"user_id": self.application.user_id, "organization_id": self.application.caller.organization_id}
        location = await consent.approve_request(
            self.application.runtime.database, self.application.issuer, parse_qsl(urlsplit(uri).query), **whose
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
async def test_a_client_library_gets_through_all_of_it(
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


async def test_answers_have_the_specifications_fields(application: Application) -> None:
    told = await application.approved(scope="calls:read agents:read", state="s 1")
    assert set(told) == {"code", "state", "iss"}
    assert (told["state"], told["iss"]) == ("s 1", application.issuer)
    given = await application.redeem(told["code"])
    assert given.status == 200
    assert set(given.json) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (given.json["token_type"], given.json["expires_in"], given.json["scope"]) == (
        "Bearer",
        3600,
        "agents:read calls:read",
    )
    assert get_prefix(str(given.json["access_token"])) == "svca_"
    assert get_prefix(str(given.json["refresh_token"])) == "svcr_"
    assert (given.headers["Cache-Control"], given.headers["Pragma"]) == ("no-store", "no-cache")
    refreshed = await application.refresh(given.json["refresh_token"])
    assert set(refreshed.json) == set(given.json)
    assert refreshed.json["scope"] == given.json["scope"]


async def test_a_public_application_proves_itself_by_its_verifier(public_application: Application) -> None:
    tokens = await public_application.tokens(**PROOF)
    assert (await public_application.holder(tokens).get("/v1/agents")).status == 200
    assert (await public_application.refresh(tokens["refresh_token"])).status == 200


async def test_the_user_is_asked_about_name_address_and_scopes(application: Application) -> None:
    asked = await consent.examine_request(
        application.runtime.database, application.issuer, application.request(scope="sms:write agents:read agents:read")
    )
    assert asked == Consent("Calendar sync", "https://app.example.com/cb", ("agents:read", "sms:write"))


async def test_a_user_who_declines_grants_nothing(application: Application) -> None:
    location = await consent.decline_request(application.runtime.database, application.issuer, application.request())
    told = answered(location)
    assert location.startswith("https://app.example.com/cb?")
    assert (told["error"], told["state"], told["iss"]) == ("access_denied", "s-1", application.issuer)
    assert "code" not in told


async def test_a_refresh_may_narrow_the_scopes_of_its_access_token(application: Application) -> None:
    tokens = await application.tokens(scope="agents:read contacts:read")
    narrow = await application.refresh(tokens["refresh_token"], scope="agents:read")
    assert narrow.json["scope"] == "agents:read"
    holder = application.holder({"access_token": str(narrow.json["access_token"])})
    assert (await holder.get("/v1/agents")).status == 200
    assert (await holder.get("/v1/contacts")).status == 403
    whole = await application.refresh(narrow.json["refresh_token"])
    assert whole.json["scope"] == "agents:read contacts:read"


async def test_metadata_say_what_is_there(application: Application, client: Client) -> None:
    response = await client.get("/.well-known/oauth-authorization-server")
    told = json.loads(await response.get_data(as_text=True))
    assert response.status_code == 200
    assert told["issuer"] == application.issuer
    assert told["response_types_supported"] == ["code"]
    assert told["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert told["code_challenge_methods_supported"] == ["S256"]
    assert told["authorization_response_iss_parameter_supported"] is True
    for name in ("token_endpoint", "revocation_endpoint"):
        path = told[name].removeprefix(application.issuer)
        assert (await client.post(path, data="{}", headers={"Content-Type": "application/json"})).status_code == 401
    api = json.loads(await (await client.get("/openapi.json")).get_data(as_text=True))
    flow = api["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert (flow["authorizationUrl"], flow["tokenUrl"]) == (told["authorization_endpoint"], told["token_endpoint"])
    assert set(flow["scopes"]) == set(told["scopes_supported"])
    assert api["paths"]["/v1/agents"]["get"]["security"] == [{"bearer": []}, {"oauth2": ["agents:read"]}]


async def test_a_code_may_come_with_its_proof_from_an_application_with_a_secret(application: Application) -> None:
    code = await application.code(**PROOF)
    assert (await application.redeem(code, code_verifier=VERIFIER)).status == 200
