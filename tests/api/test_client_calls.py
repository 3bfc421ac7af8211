"""Calls that ring clients over the loopback carrier: sockets that wait, and answer, decline, or leave."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from pydantic import JsonValue
from switchboard.resources.identity.policy import OutboundLimits, Policy

from tests.api.test_browser_calls import Browser
from tests.carriers.lines import PERSON, LoopbackPeople
from tests.carriers.test_scenarios import CLOSED, CONNECTS, INTRODUCTION
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.json_access import Json, objects_at

CLIENT = "client:reception"
LINES = ["Thank you", "I would like to order bread", "And a cake"]


@asynccontextmanager
async def open_client(live: LivePlatform, caller: Caller | None = None) -> AsyncIterator[Browser]:
    """A socket that asks for calls to `client:reception`."""
    token = (await (caller or live.caller).post("/v1/browser-call/token?identity=reception")).json
    assert isinstance(token["connection"], dict)
    async with aiohttp.ClientSession() as http, http.ws_connect(str(token["connection"]["url"])) as socket:
        await socket.send_str(json.dumps({"event": "register", "token": token["token"]}))
        yield Browser(socket)


@asynccontextmanager
async def register(live: LivePlatform, caller: Caller | None = None) -> AsyncIterator[Browser]:
    """A socket that waits for calls to `client:reception`."""
    async with open_client(live, caller) as client:
        await client.until(event="registered")
        yield client


async def send(client: Browser, event: str, **fields: str) -> None:
    await client.socket.send_str(json.dumps({"event": event, **fields}))


async def transfer_to_client(live: LivePlatform, introduction: str = "") -> None:
    """Let the agent transfer callers to the client."""
    target = f'{CLIENT}", introduction="{introduction}' if introduction else CLIENT
    prompt = CONNECTS.replace(PERSON, target)
    assert (await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt})).status == 200


async def call(live: LivePlatform, *, stays: bool = False) -> Json:
    """Let a person call the agent, and return the call in the end. A person who `stays` goes on talking with whoever
    answers, and leaves it to them to hang up.
    """
    lines = [*LINES, *["Please go on"] * 100] if stays else LINES
    await LoopbackPeople(live.runtime, live).simulate_call(PERSON, live.number, lines)
    (found,) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    return await live.wait_for_end(found["id"])


async def list_said(live: LivePlatform, call_id: JsonValue) -> list[str]:
    items = objects_at((await live.caller.get(f"/v1/calls/{call_id}/transcript")).json, "items")
    return [str(item["content"]) for item in items if item["role"] == "agent"]


async def test_a_client_answers_a_transferred_call_and_hears_the_caller(live: LivePlatform, stranger: Caller) -> None:
    await transfer_to_client(live)
    async with register(live) as client, register(live) as other, register(live, stranger) as foreign:
        calling = asyncio.create_task(call(live))
        for rung in (client, other):
            await rung.until(event="ringing")
            assert rung.received[-1]["from_number"] == PERSON
        await send(client, "answer")
        await client.until(event="connected")
        await other.until(event="canceled")
        await send(other, "answer")
        await client.until(voiced=True)
        await client.until(silent=True)
        await client.say("Hello, this is the reception")
        await client.until(voiced=True)
        await send(client, "hang_up")
        await client.until(event="ended")
        assert client.received[-1]["message"] is None
        ended = await calling
        assert [message["event"] for message in foreign.received] == ["registered"]
    assert (ended["status"], ended["ended_reason"], ended["transferred_to"]) == ("completed", "transferred", CLIENT)


async def test_a_client_accepts_an_introduced_call_with_a_key(live: LivePlatform) -> None:
    await transfer_to_client(live, INTRODUCTION)
    async with register(live) as client:
        calling = asyncio.create_task(call(live))
        await client.until(event="ringing")
        assert client.received[-1]["from_number"] == live.number
        await send(client, "answer")
        await client.until(voiced=True)
        await client.until(silent=True)
        await send(client, "digit", digit="1")
        await client.until(voiced=True)
        await send(client, "hang_up")
        await client.until(event="ended")
        ended = await calling
    assert (ended["status"], ended["ended_reason"], ended["transferred_to"]) == ("completed", "transferred", CLIENT)


async def test_the_caller_stays_with_the_agent_if_a_client_declines_an_introduced_call(live: LivePlatform) -> None:
    await transfer_to_client(live, INTRODUCTION)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(register(live)) for _ in range(2)]
        calling = asyncio.create_task(call(live))
        for client in clients:
            await client.until(event="ringing")
            await send(client, "decline")
        for client in clients:
            await client.until(event="canceled")
        ended = await calling
    assert (ended["ended_reason"], ended["transferred_to"]) == ("caller_hung_up", None)
    assert "I am sorry, that did not work." in await list_said(live, ended["id"])


@pytest.mark.parametrize("introduction", ["", INTRODUCTION])
async def test_the_caller_stays_with_the_agent_if_nobody_has_registered(live: LivePlatform, introduction: str) -> None:
    await transfer_to_client(live, introduction)
    async with register(live):
        """It has left before the call."""
    ended = await call(live)
    assert (ended["ended_reason"], ended["transferred_to"]) == ("caller_hung_up", None)
    assert "I am sorry, that did not work." in await list_said(live, ended["id"])


async def test_a_number_forwards_to_a_client_outside_its_hours(live: LivePlatform) -> None:
    path = f"/v1/phone-numbers/{live.number_id}"
    response = await live.caller.send("PUT", path, {"schedule": CLOSED, "forward_number": CLIENT})
    assert response.status == 200, response.body
    async with register(live) as client:
        calling = asyncio.create_task(call(live))
        await client.until(event="ringing")
        assert client.received[-1]["from_number"] == PERSON
        await send(client, "answer")
        await client.until(voiced=True)
        await client.socket.close()
        ended = await calling
    assert (ended["status"], ended["ended_reason"], ended["transferred_to"]) == ("completed", "transferred", CLIENT)


async def test_a_call_rings_no_longer_once_its_caller_has_hung_up(live: LivePlatform) -> None:
    await transfer_to_client(live)
    async with register(live) as client:
        people = LoopbackPeople(live.runtime, live)
        await people.simulate_call(PERSON, live.number, ["Thank you"])
        await client.until(event="canceled")
        assert [message["event"] for message in client.received] == ["registered", "ringing", "canceled"]


async def test_a_name_has_a_limited_number_of_clients(live: LivePlatform) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(register(live))
        async with open_client(live) as client:
            await client.until(event="ended")
            assert client.received[-1]["message"] == "Too many clients wait under this name."


@pytest.mark.parametrize("live", [Policy(outbound_limits=OutboundLimits(calls_per_hour=1))], indirect=True)
async def test_calls_to_clients_are_not_counted_as_outbound(live: LivePlatform) -> None:
    path = f"/v1/phone-numbers/{live.number_id}"
    await live.caller.send("PUT", path, {"schedule": CLOSED, "forward_number": CLIENT})
    for _ in range(2):
        simulated = await LoopbackPeople(live.runtime, live).simulate_call(PERSON, live.number, LINES)
        assert simulated.refused_reason == "the number that the call was forwarded to does not answer: no-answer"
    await live.place_call(PERSON)
    body = {"agent_id": live.agent_id, "to_number": PERSON, "from_number_id": live.number_id}
    assert (await live.caller.post("/v1/calls", body)).json["code"] == "outbound_paused"
