"""Rules that all endpoints share: credentials, rate limits, idempotency, errors, the OpenAPI document."""

import asyncio
import re

import pytest
from sqlmodel import col, select
from switchboard.apps.server.health import SLOW_SECONDS
from switchboard.foundation.audit import AuditEntry
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy, RateLimit, RateLimits
from switchboard.runtime import Runtime

from tests.fixtures.app import SAME_MACHINE, Caller, Client, Organizations, fresh_number
from tests.fixtures.virtual_clock import CLOCK


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Bearer svc_live_" + "0" * 49, "Basic abc", "Bearer \xe9"]
)
async def test_requests_without_a_valid_credential_are_401(client: Client, header: str | None) -> None:
    response = await client.get("/v1/agents", headers={"Authorization": header} if header is not None else {})
    assert response.status_code == 401
    has_token = header is not None and header.startswith("Bearer ")
    assert response.headers["WWW-Authenticate"] == ('Bearer error="invalid_token"' if has_token else "Bearer"), (
        "so that clients know when to refresh"
    )
    assert response.content_type == "application/problem+json"
    body = await response.get_json()
    assert sorted(body) == ["code", "detail", "errors", "request_id", "status", "title", "type"]
    assert body["request_id"] == response.headers["X-Request-Id"]


async def test_a_missing_scope_is_named(organizations: Organizations) -> None:
    caller = await organizations.create(scopes=["agents:read"])
    refused = await caller.post("/v1/agents", {"name": "Front desk"})
    assert refused.status == 403
    assert refused.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="agents:write"'


async def test_a_revoked_key_is_refused_at_the_next_request(caller: Caller, runtime: Runtime) -> None:
    assert (await caller.get("/v1/agents")).status == 200
    async with runtime.database.write(caller.organization_id) as session:
        await identity.revoke_api_key(session, caller.key_id)
    await runtime.limiter.announce_revocation(str(caller.key_id))
    assert (await caller.get("/v1/agents")).status == 401


async def test_the_rate_limit_admits_exactly_its_number_of_requests(organizations: Organizations) -> None:
    policy = Policy(rate_limits=RateLimits(read=RateLimit(per_second=0.01, burst=10)))
    caller = await organizations.create(policy=policy)
    responses = await asyncio.gather(*(caller.get("/v1/agents") for _ in range(30)))
    assert sorted(response.status for response in responses) == [200] * 10 + [429] * 20
    refused = next(response for response in responses if response.status == 429)
    assert int(refused.headers["Retry-After"]) > 0
    assert re.fullmatch(r'"default";q=10;w=\d+', refused.headers["RateLimit-Policy"])
    assert (await caller.get("/v1/calls")).status == 200, "limits are for each endpoint"


async def test_rate_limits_hold_without_redis(
    organizations: Organizations, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await organizations.create(policy=Policy(rate_limits=RateLimits(read=RateLimit(per_second=0.01, burst=3))))
    runtime.redis.connection_pool.connection_kwargs["path"] = "/nowhere/redis.sock"
    await runtime.redis.connection_pool.disconnect()
    statuses = [(await caller.get("/v1/agents")).status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


async def test_a_repeated_idempotency_key_returns_the_same_response_and_has_one_effect(caller: Caller) -> None:
    first = await caller.send("POST", "/v1/agents", {"name": "Once"}, Idempotency_Key="k1")
    again = await caller.send("POST", "/v1/agents", {"name": "Once"}, Idempotency_Key="k1")
    assert (first.status, first.body) == (again.status, again.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await caller.send("POST", "/v1/agents", {"name": "Twice"}, Idempotency_Key="k1")
    assert (other.status, other.json["code"]) == (422, "idempotency_conflict")
    assert (await caller.get("/v1/agents")).json["total"] == 1


async def test_concurrent_requests_with_one_key_have_one_effect(caller: Caller) -> None:
    responses = await asyncio.gather(
        *(caller.send("POST", "/v1/agents", {"name": "Twin"}, Idempotency_Key="k2") for _ in range(8))
    )
    assert {response.status for response in responses} <= {201, 409}
    assert (await caller.get("/v1/agents")).json["total"] == 1


async def test_a_refused_request_does_not_use_up_its_idempotency_key(caller: Caller) -> None:
    assert (await caller.send("POST", "/v1/agents", {"name": ""}, Idempotency_Key="k3")).status == 422
    assert (await caller.send("POST", "/v1/agents", {"name": "Good"}, Idempotency_Key="k3")).status == 201


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'"x"', 422),
        (b'{"name": "\\ud800"}', 422),
        (b'{"name": 1e400}', 422),
        (b"\xff\xfe", 422),
        (b'{"name": "a", "voice_speed": NaN}', 422),
        (b'{"name": ' + b"[" * 5000, 422),
        (b"", 422),
        (b'{"name": "x", "end_call_silence_seconds": 99999999999999999999999}', 422),
        (b" " * (8 * 1024 * 1024 + 1), 413),
    ],
)
async def test_malformed_bodies_do_not_crash(caller: Caller, data: bytes, status: int) -> None:
    assert (await caller.send("POST", "/v1/agents", data=data)).status == status


async def test_other_errors_are_problem_documents(caller: Caller) -> None:
    assert (await caller.send("POST", "/v1/agents", data=b"name=x", Content_Type="text/plain")).json[
        "code"
    ] == "unsupported_media_type"
    assert (await caller.get("/v1/nothing")).json["code"] == "not_found"
    mismatched = await caller.send("PATCH", "/v1/agents")
    assert (mismatched.status, mismatched.json["code"]) == (405, "method_not_allowed")
    assert "GET" in mismatched.headers["Allow"]
    assert (await caller.get("/v1/agents/not-a-uuid")).status == 404


async def test_the_openapi_document_is_valid_and_complete(client: Client) -> None:
    from openapi_spec_validator import validate  # here, because its grammar of addresses takes a second to compile

    document = await (await client.get("/openapi.json")).get_json()
    validate(document)
    assert document["openapi"] == "3.1.0"
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) > 10
    assert {"401", "403", "422", "429"} <= set(document["paths"]["/v1/agents"]["get"]["responses"])
    assert "call.completed" in document["webhooks"]
    page = await (await client.get("/docs/api/calls")).get_data(as_text=True)
    assert "Start an outbound call through an agent" in page
    assert not re.search(r'(src|href)="(https?:)?//', page), "nothing comes from a foreign host"


async def test_health_endpoints(client: Client) -> None:
    assert (await client.get("/healthz")).status_code == 200
    assert (await (await client.get("/readyz")).get_json())["status"] == "ok"
    metrics = await (await client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=False)
    assert b"switchboard_live_calls" in metrics
    assert b"switchboard_delivery_queue_age_seconds" in metrics


async def test_a_slow_database_takes_no_process_out_of_service(
    client: Client, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async def ask() -> tuple[int, object]:
        response = await client.get("/readyz")
        return response.status_code, (await response.get_json())["database"]

    assert await ask() == (200, "ok")
    monkeypatch.setattr(runtime.database, "ping", hang)
    assert await ask() == (200, "slow")
    CLOCK.advance(SLOW_SECONDS)
    assert await ask() == (503, "unavailable")


async def test_every_change_is_audited_with_its_actor_and_without_values(caller: Caller, runtime: Runtime) -> None:
    body = b'{"name": "Secretive", "webhook_secret": "hush-hush-hush-hush-hush"}'
    created = await caller.send("POST", "/v1/agents", data=body, Idempotency_Key="once")
    await caller.send("POST", "/v1/agents", data=body, Idempotency_Key="once")
    agent_id = created.json["id"]
    path = f"agents/{agent_id}"
    await caller.send("PUT", f"/v1/{path}", {"name": "Other", "system_prompt": "x"})
    assert (await caller.send("PUT", f"/v1/{path}", {"name": 5})).status == 422
    await caller.get(f"/v1/{path}")
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    await caller.send("DELETE", f"/v1/{path}")
    async with runtime.database.write(caller.organization_id) as session:
        entries = (
            await session.exec(select(AuditEntry).order_by(col(AuditEntry.created_at), col(AuditEntry.id)))
        ).all()
    assert {entry.actor for entry in entries[1:]} == {f"key:{caller.key_id}"}
    assert [(entry.action, entry.subject) for entry in entries[1:]] == [
        ("agent.created", f"{agent_id} name, webhook_secret"),
        ("agent.updated", f"{agent_id} name, system_prompt"),
        ("phone_number.ordered", f"{number} phone_number"),
        ("agent.deleted", agent_id),
    ]
