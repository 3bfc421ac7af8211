"""The Python client against the platform, and against servers that fail."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from time import perf_counter

import pytest
import pytest_asyncio
from aiohttp import web
from switchboard_client import (
    ApiError,
    AsyncSwitchboard,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    InvalidResponse,
    InvalidSignature,
    NotFoundError,
    RateLimitError,
    ServerError,
    Switchboard,
    ValidationError,
    webhooks,
)
from switchboard_client.generated.models import CallCompletedDelivery

from tests.fixtures.app import UNKNOWN_ID, LivePlatform
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.http_server import serve_application
from tests.fixtures.receiver import Receiver
from tests.fixtures.servers import REPOSITORY

PHONE_NUMBER = "+15550100001"
CREATED = {
    "id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c03",
    "phone_number": PHONE_NUMBER,
    "note": "",
    "source": "a source of a later version",
    "a_later_field": 1,
    "created_at": "2026-11-20T09:30:00.000Z",
}


@dataclass(slots=True)
class FailingServer:
    """A server that responds with `responses` in order, then with `CREATED`; None closes the connection instead."""

    responses: list[web.Response | None] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    url: str = ""

    async def respond(self, request: web.Request) -> web.Response:
        await request.read()
        self.requests.append(request)
        if not self.responses:
            return web.json_response(CREATED, status=201)
        response = self.responses.pop(0)
        if response is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return response


@pytest_asyncio.fixture
async def failing() -> AsyncIterator[FailingServer]:
    server = FailingServer()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.respond)
    async with serve_application(application) as server.url:
        yield server


def create_problem(status: int, code: str, **headers: str) -> web.Response:
    body = {"status": status, "code": code, "detail": "No.", "errors": [], "request_id": "r1"}
    return web.json_response(
        body, status=status, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


async def in_thread(server: FailingServer, use: Callable[[Switchboard], object], *, max_retries: int = 3) -> object:
    """Use the blocking client in a thread, because the server runs in this one."""
    with Switchboard(api_key="svc_live_x", base_url=server.url, max_retries=max_retries) as client:
        return await asyncio.to_thread(use, client)


@pytest.mark.local_receivers
async def test_a_call_is_placed_its_transcript_read_and_its_event_verified(
    live: LivePlatform, receiver: Receiver
) -> None:
    base_url = live.runtime.settings.base_url
    async with AsyncSwitchboard(api_key=live.caller.key, base_url=base_url) as client:
        endpoint = await client.webhook_endpoints.create(url=f"{receiver.url}/hooks", events=["call.completed"])
        call = await client.calls.create(
            agent_id=live.agent_id,
            from_number_id=live.number_id,
            to_number="+15550100001",
            metadata={"customer": "Ada"},
        )
        await live.wait_for_end(call.id)
        ended = await client.calls.get(call.id)
        transcript = await client.calls.get_transcript(call.id)
    assert ended.status == "completed"
    assert "Hello Ada, this is the bakery on the corner." in [entry.content for entry in transcript]
    (delivery,) = await receiver.first("/hooks", seconds=30)
    event = webhooks.verify(delivery.body, delivery.headers, endpoint.secret)
    assert isinstance(event, CallCompletedDelivery)
    assert event.data.call_id == call.id
    for body, secret in ((delivery.body + b" ", endpoint.secret), (delivery.body, "whsec_another")):
        with pytest.raises(InvalidSignature, match="this secret"):
            webhooks.verify(body, delivery.headers, secret)
    with pytest.raises(InvalidSignature, match="seconds old"):
        webhooks.verify(delivery.body, delivery.headers, endpoint.secret, tolerance=-1)
    with pytest.raises(InvalidSignature, match="no X-Webhook-Signature"):
        webhooks.verify(delivery.body, {}, endpoint.secret)


async def test_the_blocking_client_iterates_over_all_pages_while_contacts_are_added(live: LivePlatform) -> None:
    def use() -> list[str]:
        with Switchboard(api_key=live.caller.key, base_url=live.runtime.settings.base_url) as client:
            created = [client.contacts.create(phone_number=f"+1555010{number:04d}") for number in range(7)]
            page = client.contacts.list(limit=3)
            assert (page.total, len(page.items)) == (7, 3)
            client.contacts.create(phone_number="+15550109999")
            iterated = [contact.id for contact in page]
            assert iterated == [contact.id for contact in reversed(created)]
            client.contacts.update(created[0].id, name="Ada", company=None)
            assert client.contacts.get(created[0].id).name == "Ada"
            client.contacts.delete(created[0].id)
            with pytest.raises(NotFoundError):
                client.contacts.get(created[0].id)
            return iterated

    assert len(set(await asyncio.to_thread(use))) == 7


async def test_the_examples_of_the_readme_run(live: LivePlatform, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / "clients/python/README.md").read_text(), re.DOTALL)
    given = {"svc_live_…": live.caller.key, "http://127.0.0.1:8080": live.runtime.settings.base_url}
    program = "".join(blocks)
    for text, value in given.items():
        assert text in program
        program = program.replace(text, value)
    scope: dict[str, object] = {}
    await asyncio.to_thread(exec, program, scope)
    assert isinstance(scope["client"], Switchboard)
    scope["client"].close()
    printed = capsys.readouterr().out.splitlines()
    assert "queued" in printed
    assert any(line.startswith("to_number ") for line in printed)


async def test_errors_say_what_the_server_said(live: LivePlatform) -> None:
    base_url = live.runtime.settings.base_url
    async with AsyncSwitchboard(api_key=live.caller.key, base_url=base_url) as client:
        assert [agent.id async for agent in await client.agents.list(limit=1)] == [live.agent_id]
        with pytest.raises(ValidationError, match="to_number: ") as caught:
            await client.calls.create(agent_id=UNKNOWN_ID, from_number_id=live.number_id, to_number="no number")
        assert caught.value.code == "validation_error"
        assert caught.value.request_id
        with pytest.raises(NotFoundError):
            await client.calls.get("../agents")
    async with AsyncSwitchboard(api_key="svc_live_wrong", base_url=base_url) as client:
        with pytest.raises(AuthenticationError):
            await client.calls.list()


async def test_a_post_is_repeated_with_its_idempotency_key(failing: FailingServer) -> None:
    """A closed connection, a failing server, and a first attempt that still runs; values of later versions are kept."""
    failing.responses = [None, web.Response(status=502, text="<h1>"), create_problem(409, "idempotency_conflict")]
    async with AsyncSwitchboard(api_key="svc_live_x", base_url=failing.url) as client:
        entry = await client.do_not_call.create_entry(phone_number=PHONE_NUMBER)
    assert (entry.id, entry.source, entry.model_extra) == (CREATED["id"], CREATED["source"], {"a_later_field": 1})
    keys = {request.headers["Idempotency-Key"] for request in failing.requests}
    assert (len(failing.requests), len(keys)) == (4, 1)
    await in_thread(
        failing, lambda client: client.do_not_call.create_entry(phone_number=PHONE_NUMBER, idempotency_key="mine")
    )
    assert failing.requests[-1].headers["Idempotency-Key"] == "mine"


async def test_retry_after_is_honored(failing: FailingServer) -> None:
    failing.responses = [create_problem(429, "rate_limited", Retry_After="1")]
    started = perf_counter()
    await in_thread(failing, lambda client: client.do_not_call.create_entry(phone_number=PHONE_NUMBER))
    assert perf_counter() - started >= 1
    failing.responses = [create_problem(429, "rate_limited", Retry_After="3600")]
    with pytest.raises(RateLimitError):
        await in_thread(failing, lambda client: client.do_not_call.create_entry(phone_number=PHONE_NUMBER))


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (lambda: create_problem(500, "internal_error"), ServerError),
        (lambda: None, ConnectionFailed),
    ],
)
async def test_the_last_failure_is_raised(
    failing: FailingServer, response: Callable[[], web.Response | None], error: type[Exception]
) -> None:
    failing.responses = [response(), response()]
    with pytest.raises(error):
        await in_thread(failing, lambda client: client.calls.list(), max_retries=1)
    assert failing.responses == []
    assert len(failing.requests) == 2


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (lambda: create_problem(409, "invalid_state"), ConflictError),
        (lambda: create_problem(402, "insufficient_balance"), ApiError),
        (lambda: web.Response(status=403, text="<h1>A proxy</h1>", headers={"X-Request-Id": "r2"}), ApiError),
    ],
)
async def test_an_error_that_stays_is_not_repeated(
    failing: FailingServer, response: Callable[[], web.Response], error: type[ApiError]
) -> None:
    failing.responses = [response()]
    with pytest.raises(error) as caught:
        await in_thread(failing, lambda client: client.do_not_call.create_entry(phone_number=PHONE_NUMBER))
    assert caught.value.request_id in ("r1", "r2")
    assert len(failing.requests) == 1


async def test_a_page_of_a_proxy_is_an_invalid_response(failing: FailingServer) -> None:
    failing.responses = [web.Response(text="<h1>Sign in</h1>")]
    with pytest.raises(InvalidResponse):
        await in_thread(failing, lambda client: client.calls.list())


async def test_an_unreachable_server_is_a_connection_error() -> None:
    async with AsyncSwitchboard(
        api_key="svc_live_x", base_url=f"http://127.0.0.1:{find_free_port()}", max_retries=0
    ) as client:
        with pytest.raises(ConnectionFailed):
            await client.calls.list()
