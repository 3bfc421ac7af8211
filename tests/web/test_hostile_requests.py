"""Requests that no client of good will sends: each gets a 4xx or is closed, and costs little."""

import asyncio
import dataclasses
import json
import resource
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode

import pytest
from pydantic import JsonValue, SecretStr
from switchboard.apps.server.app import create_app
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import SAME_MACHINE, Caller, Client, Organizations, run_server
from tests.fixtures.json_access import Json, objects_at, text_at
from tests.fixtures.raw_http import H2C_UPGRADE, HTTP2_PREFACE, TWO_LENGTHS, exchange


@pytest.fixture
async def base_url(runtime: Runtime) -> AsyncIterator[str]:
    async with run_server(runtime, worker=False):
        yield runtime.settings.base_url


async def test_http_2_is_not_spoken_in_clear_text(base_url: str) -> None:
    assert (await exchange(base_url, H2C_UPGRADE)).startswith(b"HTTP/1.1 200")
    assert (await exchange(base_url, HTTP2_PREFACE)).startswith(b"HTTP/1.1 4")


async def test_responses_on_one_connection_are_whole_and_in_order(base_url: str) -> None:
    asked = b"".join(b"%s /healthz HTTP/1.1\r\nHost: x\r\n\r\n" % method for method in (b"GET", b"HEAD", b"GET"))
    heads = [part.partition(b"\r\n\r\n") for part in (await exchange(base_url, asked)).split(b"HTTP/1.1 200")[1:]]
    lengths = [int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]) for head, _, _ in heads]
    assert [len(body) for _, _, body in heads] == [lengths[0], 0, lengths[2]]
    assert lengths[0] > 0


async def test_a_request_with_two_lengths_is_refused_and_closed(base_url: str) -> None:
    answer = await exchange(base_url, TWO_LENGTHS)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


async def test_an_unfinished_body_is_no_server_error(base_url: str, organizations: Organizations) -> None:
    caller = await organizations.create()
    head = (
        f"POST /v1/contacts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {caller.key}\r\nContent-Length: 50\r\n\r\n{{"
    )
    answer = await exchange(base_url, head.encode(), end=True)
    assert b" 500 " not in answer


@pytest.mark.parametrize(
    "path",
    ["/dashboard/static/nope.js", "/dashboard/static/%00", "/v1/calls/%00", "/%00", "/dashboard/invitations/%00"],
)
async def test_odd_paths_are_not_found(caller: Caller, path: str) -> None:
    assert (await caller.get(path)).status in (401, 404)


async def test_text_that_the_database_cannot_store_is_refused(client: Client) -> None:
    form = urlencode({"email": "a\0b@x.example", "password": "x"})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await client.post("/dashboard/sign-in", data=form, headers=headers)).status_code == 422


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"])
async def test_times_at_the_ends_of_the_calendar_are_refused(caller: Caller, moment: str) -> None:
    fields = {"name": "x", "agent_id": "x", "phone_number_id": "x", "contacts": [{"phone_number": "+15550100001"}]}
    refused = await caller.post("/v1/campaigns", {**fields, "scheduled_at": moment})
    assert refused.status == 422
    assert text_at(refused.json, "errors", 0, "field") == "scheduled_at"


def measure_memory() -> float:
    """Return the resident memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


async def test_a_body_of_errors_costs_little_and_lists_fifty(caller: Caller) -> None:
    fields = {"name": "x", "agent_id": "x", "phone_number_id": "x"}
    documents: list[Json] = [
        {f"field{n}": 1 for n in range(400_000)},
        {**fields, "contacts": [{"x": 1}] * 700_000},
        {**fields, "contacts": [{f"field{n}": 1 for n in range(400_000)}]},
        {**fields, "contacts": [{"phone_number": "x"}] * 100_000},
    ]
    bodies = [json.dumps(document).encode() for document in documents]
    for body in bodies:
        began = time.process_time()
        refused = await caller.send("POST", "/v1/campaigns", data=body)
        assert refused.status == 422
        assert 1 <= len(objects_at(refused.json, "errors")) <= 50
        assert len(json.dumps(refused.json)) < 20_000
        assert time.process_time() - began < 5
    after_rounds = [measure_memory()]
    for _ in range(2):
        await asyncio.gather(*(caller.send("POST", "/v1/campaigns", data=body) for body in bodies))
        after_rounds.append(measure_memory())
    # The allocator may keep some of it once, where other tests have fragmented its memory.
    grown = [after - before for before, after in pairwise(after_rounds)]
    assert min(grown) < 70, "what errors took is given back"


async def test_the_faulty_items_of_a_long_list_are_named_by_their_place(caller: Caller) -> None:
    contacts: list[JsonValue] = [{"phone_number": f"+1555010{n:04}"} for n in range(3000)]
    contacts[2500] = contacts[2600] = {"phone_number": "nobody"}
    fields = {"name": "x", "agent_id": "x", "phone_number_id": "x", "contacts": contacts}
    refused = await caller.post("/v1/campaigns", fields)
    named = [error["field"] for error in objects_at(refused.json, "errors")]
    assert named == ["contacts.2500.phone_number", "contacts.2600.phone_number"]


async def test_api_responses_are_neither_sniffed_nor_stored(caller: Caller) -> None:
    response = await caller.get("/v1/calls")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"metrics_token": getattr(request, "param", None)})


async def test_metrics_are_for_the_same_machine(client: Client) -> None:
    assert (await client.get("/metrics", scope_base=SAME_MACHINE)).status_code == 200
    assert (await client.get("/metrics", scope_base={"client": ("192.0.2.1", 1)})).status_code == 401
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    assert (await client.get("/metrics", headers=forwarded, scope_base=SAME_MACHINE)).status_code == 401
    public_name = {"Host": "voice.example.com"}
    assert (await client.get("/metrics", headers=public_name, scope_base=SAME_MACHINE)).status_code == 401


async def test_metrics_of_an_installation_with_a_public_address_need_the_token(
    runtime: Runtime, settings: Settings
) -> None:
    """A proxy on the same machine may add no header at all, and name the server by its own address."""
    for public_url, status in (("https://voice.example.com", 401), ("http://127.0.0.1:8080", 200)):
        parts = dataclasses.replace(runtime, settings=settings.model_copy(update={"public_url": public_url}))
        client = create_app(parts).test_client()
        assert (await client.get("/metrics", scope_base=SAME_MACHINE)).status_code == status


@pytest.mark.parametrize("settings", [SecretStr("a token of sixteen")], indirect=True)
async def test_metrics_are_for_who_has_the_token(client: Client) -> None:
    for token, status in (("a token of sixteen", 200), ("another token", 401), ("", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        assert (await client.get("/metrics", headers=headers, scope_base=SAME_MACHINE)).status_code == status
