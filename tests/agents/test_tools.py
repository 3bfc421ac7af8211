"""Tools that an agent declares, called over the wire by its model."""

from uuid import UUID

import pytest
from pydantic import JsonValue
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.foundation.database import new_id
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import ToolCall, ToolContext
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import build_declared_tools
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.json_access import Json, at
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.local_receivers
SECRET = "whsec_of_the_agent"
PARAMETERS: Json = {
    "type": "object",
    "properties": {"number": {"type": "string", "description": "the order's number"}},
    "required": ["number"],
}


def build_tool(url: str, **fields: JsonValue) -> Json:
    return {"name": "find_order", "description": "Find an order.", "url": url, "parameters": PARAMETERS, **fields}


async def call_tool(
    runtime: Runtime, caller: Caller, receiver: Receiver, **fields: JsonValue
) -> tuple[Json, ToolContext]:
    """Return what the model learns from a call of the tool."""
    secret = fields.pop("webhook_secret", SECRET)
    response = await caller.post(
        "/v1/agents",
        {"name": "Agent", "webhook_secret": secret, "tools": [build_tool(f"{receiver.url}/orders", **fields)]},
    )
    assert response.status == 201, response.body
    agent_id = UUID(str(response.json["id"]))
    async with runtime.database.write(caller.organization_id) as session:
        agent = await get_row(session, Agent, agent_id)
    context = ToolContext(caller.organization_id, agent_id, new_id(), "+15550100001", "+15550100200")
    toolbox = Toolbox(await build_declared_tools(runtime.database, runtime.outbound, agent), context)
    assert [spec.parameters for spec in toolbox.specs] == [PARAMETERS]
    return await toolbox.run(ToolCall("1", "find_order", {"number": "17"})), context


async def test_the_endpoint_receives_arguments_and_caller_in_a_signed_request(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    receiver.bodies["/orders"] = b'{"state": "baked"}'
    result, context = await call_tool(runtime, caller, receiver)
    assert result == {"state": "baked"}
    (request,) = receiver.at("/orders")
    assert request.signed_by(SECRET)
    assert request.json == {
        "tool": "find_order",
        "arguments": {"number": "17"},
        "agent_id": str(context.agent_id),
        "call_id": str(context.call_id),
        "conversation_id": None,
        "from_number": "+15550100001",
        "to_number": "+15550100200",
        "variables": {},
    }


async def test_arguments_from_the_keypad_are_the_callers_and_not_the_models(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    tool = build_tool(f"{receiver.url}/orders", keypad_entries=[{"parameter": "number"}])
    response = await caller.post("/v1/agents", {"name": "Agent", "tools": [tool]})
    assert at(response.json, "tools", 0, "keypad_entries") == [{"parameter": "number", "prompt": "", "max_digits": 20}]
    agent_id = UUID(str(response.json["id"]))
    async with runtime.database.write(caller.organization_id) as session:
        agent = await get_row(session, Agent, agent_id)
    context = ToolContext(caller.organization_id, agent_id, new_id(), "+15550100001", "+15550100200")
    toolbox = Toolbox(await build_declared_tools(runtime.database, runtime.outbound, agent), context)
    assert [spec.parameters for spec in toolbox.specs] == [{"type": "object", "properties": {}, "required": []}]
    assert await toolbox.run(ToolCall("1", "find_order", {"number": "the model's"}), {"number": "17"}) == {}
    (request,) = receiver.at("/orders")
    assert request.json["arguments"] == {"number": "17"}
    without = await toolbox.run(ToolCall("2", "find_order", {}))
    assert without == {"error": "find_order works on the phone only: the caller enters data on the keypad"}


async def test_requests_are_unsigned_without_a_secret(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    assert (await call_tool(runtime, caller, receiver, webhook_secret=None))[0] == {}
    assert receiver.at("/orders")[0].signed_by()


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ((500, b"{}"), {"error": "find_order returned status 500"}),
        ((302, b"{}"), {"error": "find_order returned status 302"}),
        ((200, b"[1]"), {"error": "find_order did not return a JSON object of at most 64 KiB"}),
        ((200, b"<html>"), {"error": "find_order did not return a JSON object of at most 64 KiB"}),
        (
            (200, b'{"a": "' + b"x" * 70_000 + b'"}'),
            {"error": "find_order did not return a JSON object of at most 64 KiB"},
        ),
        ((204, b""), {}),
    ],
)
async def test_the_model_receives_errors_as_tool_results(
    runtime: Runtime, caller: Caller, receiver: Receiver, reply: tuple[int, bytes], result: Json
) -> None:
    receiver.statuses["/orders"], receiver.bodies["/orders"] = [reply[0]], reply[1]
    assert (await call_tool(runtime, caller, receiver))[0] == result


async def test_a_slow_tool_times_out(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    receiver.hangs.add("/orders")
    result, _ = await call_tool(runtime, caller, receiver, time_limit_seconds=1)
    assert result["error"] in ("find_order took too long", "find_order could not be reached: no response in time")
    receiver.release()


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([{"name": "find_order"}], "tools.0.description"),
        ([build_tool("https://example.com/", name="end_call")], "tools.0.name"),
        ([build_tool("https://example.com/", name="find order")], "tools.0.name"),
        ([build_tool("https://example.com/"), build_tool("https://example.com/")], "tools.1.name"),
        ([build_tool("https://example.com/"), build_tool("http://169.254.169.254/", name="other")], "tools.1.url"),
        ([build_tool("https://example.com/", parameters={"type": "string"})], "tools.0.parameters"),
        ([build_tool("https://example.com/", time_limit_seconds=61)], "tools.0.time_limit_seconds"),
        ([build_tool("https://example.com/", keypad_entries=[{"parameter": "pin"}])], "tools.0"),
        ([build_tool("https://example.com/", keypad_entries=[{"parameter": "number"}] * 2)], "tools.0"),
    ],
)
async def test_an_invalid_tool_is_refused_by_field(caller: Caller, tools: JsonValue, field: str) -> None:
    response = await caller.post("/v1/agents", {"name": "Agent", "tools": tools})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, field), response.body
