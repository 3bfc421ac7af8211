"""Forms of a token request: client authentication, bodies, and errors."""

import base64
import hmac
import json
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.web.principal import Limit
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.oauth import clients, token_endpoint
from switchboard.resources.oauth.consent import RequestRefused

from tests.fixtures.app import ApiResponse, Client
from tests.fixtures.oauth import PROOF, VERIFIER, Application

FORM = "application/x-www-form-urlencoded"
FAULTY_BODIES = [
    (b"", "application/json"),
    (b"{", "application/json"),
    (b"[]", "application/json"),
    (b'[["grant_type", "refresh_token"]]', "application/json"),
    (b'"x"', "application/json"),
    (b"null", "application/json"),
    (b"\xff\xfe", "application/json"),
    (b"[" * 16_000, "application/json"),
    (b'{"grant_type": "refresh_token", "grant_type": "refresh_token"}', "application/json"),
    (b'{"client_id": 5}', "application/json"),
    (b'{"client_id": "a\\u0000b"}', "application/json"),
    (b'{"client_id": "\\ud800"}', "application/json"),
    (b'{"refresh_token": {"a": "b"}, "client_id": "x"}', "application/json"),
    (b'{"code": ["x"], "client_id": "x"}', "application/json"),
    (b'{"code": true, "client_id": "x"}', "application/json"),
    (b'{"x": "' + b"x" * 20_000 + b'"}', "application/json"),
    (b"client_id=a&client_id=b", FORM),
    (b"client_id=%00", FORM),
    (b"client_id=%FF", FORM),
    (b"client_id=\xff", FORM),
    ("&".join(f"a{number}=b" for number in range(60)).encode(), FORM),
    (b"grant_type=refresh_token", "text/plain"),
    (b"grant_type=refresh_token", "multipart/form-data; boundary=x"),
    (b"<x/>", "application/xml"),
]


async def send(http: Client, body: str | bytes, mimetype: str = "application/json", **headers: str) -> ApiResponse:
    response = await http.post("/api/oauth/token", data=body, headers={"Content-Type": mimetype, **headers})
    content = await response.get_data(as_text=False)
    return ApiResponse(response.status_code, response.headers, content, json.loads(content))


def build_basic_header(client_id: str, secret: str | None) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"}


async def test_json_form_and_basic_authentication_are_accepted(application: Application, client: Client) -> None:
    async def fields() -> dict[str, str]:
        return {
            "grant_type": "authorization_code",
            "code": await application.obtain_code(),
            "redirect_uri": application.redirect_uri,
        }

    credentials = {"client_id": application.client_id, "client_secret": str(application.secret)}
    assert (await send(client, json.dumps({**await fields(), **credentials}))).status == 200
    assert (
        await send(client, json.dumps({**await fields(), **credentials, "scope": None, "audience": ["x"]}))
    ).status == 200
    assert (await send(client, urlencode({**await fields(), **credentials}), FORM)).status == 200
    assert (
        await send(client, urlencode({**await fields(), **credentials, "scope": ""}), f"{FORM}; charset=UTF-8")
    ).status == 200
    assert (
        await send(
            client, urlencode(await fields()), FORM, **build_basic_header(application.client_id, application.secret)
        )
    ).status == 200
    identified = {**await fields(), "client_id": application.client_id}
    assert (
        await send(client, json.dumps(identified), **build_basic_header(application.client_id, application.secret))
    ).status == 200


async def test_a_public_application_sends_only_its_id(public_application: Application, client: Client) -> None:
    for headers, identified in (
        ({}, {"client_id": public_application.client_id}),
        (build_basic_header(public_application.client_id, ""), {}),
    ):
        fields = {
            "grant_type": "authorization_code",
            "redirect_uri": public_application.redirect_uri,
            "code_verifier": VERIFIER,
            **identified,
        }
        body = json.dumps({**fields, "code": await public_application.obtain_code(**PROOF)})
        assert (await send(client, body, **headers)).status == 200


async def test_a_malformed_body_is_an_invalid_request(client: Client) -> None:
    for body, mimetype in FAULTY_BODIES:
        response = await send(client, body, mimetype)
        assert (response.status, response.json["error"]) == (400, "invalid_request"), (body, response.body)
        assert response.headers["Cache-Control"] == "no-store"


async def test_a_client_must_authenticate_as_it_is_registered(
    application: Application, public_application: Application, client: Client
) -> None:
    client_id, token = application.client_id, {"grant_type": "refresh_token", "refresh_token": "x"}
    attempts: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}),
        ({"client_id": client_id}, {}),
        ({"client_id": client_id, "client_secret": "wrong"}, {}),
        ({"client_id": client_id, "client_secret": str(application.secret) + "x"}, {}),
        ({"client_id": "no agent", "client_secret": str(application.secret)}, {}),
        ({"client_id": public_application.client_id, "client_secret": "x"}, {}),
        ({"client_secret": str(application.secret)}, {}),
        ({}, build_basic_header(client_id, "wrong")),
        ({}, build_basic_header("no agent", application.secret)),
        ({}, {"Authorization": "Basic"}),
        ({}, {"Authorization": "Basic not-base64!"}),
        ({}, {"Authorization": f"Basic {base64.b64encode(bytes([255, 0])).decode()}"}),
        ({}, {"Authorization": f"Bearer {application.secret}"}),
    ]
    messages = set()
    for fields, headers in attempts:
        response = await send(client, json.dumps({**token, **fields}), **headers)
        assert (response.status, response.json["error"]) == (401, "invalid_client"), (fields, headers)
        assert response.headers["WWW-Authenticate"].startswith("Basic realm=")
        messages.add(response.body)
    assert len(messages) == 1, "nobody learns what was wrong"
    duplicated = await send(
        client,
        json.dumps({**token, "client_secret": application.secret}),
        **build_basic_header(client_id, application.secret),
    )
    assert (duplicated.status, duplicated.json["error"]) == (400, "invalid_request")
    other = await send(
        client, json.dumps({**token, "client_id": "other"}), **build_basic_header(client_id, application.secret)
    )
    assert (other.status, other.json["error"]) == (400, "invalid_request")


async def test_missing_and_unknown_parameters_are_named(application: Application) -> None:
    requests: list[tuple[dict[str, str | None], str]] = [
        ({}, "invalid_request"),
        ({"grant_type": "authorization_code"}, "invalid_request"),
        ({"grant_type": "refresh_token"}, "invalid_request"),
        ({"grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "implicit"}, "unsupported_grant_type"),
        ({"grant_type": 'a"\\b'}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code", "code": "made up"}, "invalid_grant"),
        ({"grant_type": "authorization_code", "code": "' or 1=1 --"}, "invalid_grant"),
    ]
    for fields, error in requests:
        response = await application.post("/api/oauth/token", application.add_credentials(fields))
        assert (response.status, response.json["error"]) == (400, error), fields
        assert all(character not in str(response.json["error_description"]) for character in '"\\')


async def test_parameters_in_the_query_are_ignored(application: Application) -> None:
    code = await application.obtain_code()
    query = urlencode(
        application.add_credentials(
            {"grant_type": "authorization_code", "code": code, "redirect_uri": application.redirect_uri}
        )
    )
    response = await application.post(f"/api/oauth/token?{query}", {})
    assert (response.status, response.json["error"]) == (401, "invalid_client")


async def test_secrets_are_compared_in_constant_time_also_for_unknown_clients(
    application: Application, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(left_value: bytes, right_value: bytes) -> bool:
        compared.append((left_value, right_value))
        return hmac.compare_digest(left_value, right_value)

    monkeypatch.setattr(clients, "compare_digest", compare)
    guesses = [
        (application.client_id, "x"),
        (application.client_id, str(application.secret)[:-1]),
        ("no agent", "x"),
        ("no agent", ""),
    ]
    for client_id, guess in guesses:
        body = json.dumps(
            {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id, "client_secret": guess}
        )
        assert (await send(client, body)).status == 401
    assert len(compared) == len(guesses)
    assert {len(side) for pair in compared for side in pair} == {32}, "hashes, of one length"


async def test_the_token_endpoint_is_rate_limited_by_address_and_by_client(
    application: Application, public_application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh_token = (await public_application.obtain_tokens(**PROOF))["refresh_token"]

    async def statuses() -> list[int]:
        return [(await application.refresh("svcr_made_up")).status for _ in range(6)]

    monkeypatch.setattr(token_endpoint, "PER_ADDRESS", Limit(0.01, 5))
    assert await statuses() == [400] * 6, "an application that knows its secret does not count for its address"
    for _ in range(6):
        refreshed = await public_application.refresh(refresh_token)
        assert refreshed.status == 200, "nor does a valid token"
        refresh_token = str(refreshed.json["refresh_token"])
    secret, application.secret = application.secret, "wrong"
    assert await statuses() == [*[401] * 5, 429]
    refused = await application.refresh("svcr_made_up")
    assert refused.json["error"] == "temporarily_unavailable"
    assert int(refused.headers["Retry-After"]) >= 1
    application.address = "10.1.0.1"
    assert (await application.refresh("svcr_made_up")).status == 401, "other addresses are not held up"
    monkeypatch.setattr(token_endpoint, "PER_CLIENT", Limit(0.01, 5))
    application.address, application.secret = "10.1.0.2", secret
    assert 429 in await statuses()
    application.secret = "wrong"
    assert (await application.refresh("svcr_made_up")).status == 401, "who does not know the secret does not count"


async def test_a_new_secret_replaces_the_old_one_and_tokens_stay_valid(application: Application) -> None:
    tokens = await application.obtain_tokens()
    old, (_, application.secret) = (
        application.secret,
        await clients.rotate_client_secret(application.runtime.database, application.id),
    )
    assert (await application.refresh(tokens["refresh_token"])).status == 200
    application.secret = old
    assert (await application.refresh(tokens["refresh_token"])).status == 401


async def test_requests_without_https_are_refused(
    application: Application, servers: DataDirectory, registry: Registry
) -> None:
    settings = application.runtime.settings.model_copy(update={"public_url": "http://switchboard.example.com"})
    urls = {"database_url": servers.database_url, "redis_url": servers.redis_url}
    async with open_process_runtime(settings, **urls, registry=registry) as runtime:
        plain = replace(application, runtime=runtime, client=app.create_app(runtime).test_client())
        with pytest.raises(RequestRefused, match="https"):
            await plain.obtain_code()
        assert (await plain.refresh("svcr_made_up")).json["error"] == "insecure_transport"
