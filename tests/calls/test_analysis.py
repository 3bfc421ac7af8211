"""Analysis of calls after their end."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import pytest
from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.plugin_sdk import ChatEvent, ChatRequest, JsonObject, ModelUsage, ProviderSettings, TextDelta
from switchboard.resources.calls import analysis
from switchboard.resources.calls.analysis import analyze_call
from switchboard.runtime import Runtime
from switchboard_offline.scripted import ScriptedLLM

from tests.fixtures.app import Caller
from tests.fixtures.calls import add_call, add_line
from tests.fixtures.json_access import Json, at
from tests.fixtures.work import do_due_work

SAID = "Good day, my name is Ada Lovelace, write to ada@example.com please."


async def create_ended_call(runtime: Runtime, caller: Caller, agent_id: JsonValue) -> UUID:
    """Create an ended call with a transcript whose analysis is due, and return its id."""
    await add_call(runtime, caller, now(), agent_id=UUID(str(agent_id)), analysis_due_at=now())
    call = at((await caller.get("/v1/calls")).json, "items", 0)
    call_id = UUID(str(at(call, "id")))
    async with runtime.database.write(caller.organization_id) as session:
        await add_line(session, call_id, SAID)
    return call_id


async def analyze(runtime: Runtime, caller: Caller, call_id: UUID) -> None:
    await runtime.call(analysis.analyze_call, organization_id=caller.organization_id, call_id=call_id)


async def create_analyzed_call(runtime: Runtime, caller: Caller, agent_id: JsonValue) -> Json:
    """Create an ended call with a transcript, and return it once it is analyzed."""
    call_id = await create_ended_call(runtime, caller, agent_id)
    await analyze(runtime, caller, call_id)
    return (await caller.get(f"/v1/calls/{call_id}")).json


@pytest.mark.parametrize(
    ("schema", "extracted"),
    [
        (None, {"name": "Ada Lovelace", "email": "ada@example.com"}),
        ({"properties": {"email": {"type": "string"}, "age": {"type": "integer"}}}, {"email": "ada@example.com"}),
        ({"properties": {"name": {"type": "number"}}}, {}),
        ({"properties": {"name": {"type": "string", "enum": ["Charles"]}}}, {}),
    ],
)
async def test_an_agent_defines_the_data_to_extract(
    runtime: Runtime, caller: Caller, schema: JsonValue, extracted: Json
) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Agent", "extraction_schema": schema})).json
    assert (agent["extraction_schema"] is None) == (schema is None)
    call = await create_analyzed_call(runtime, caller, agent["id"])
    assert call["extracted_data"] == extracted
    assert "by rules" in str(call["call_summary"])
    assert call["served_by"] == {"analysis": "scripted"}


async def test_the_extraction_schema_suits_every_vendor(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anthropic allows only object fields that the schema names, so an open object would stay empty."""
    formats = list[JsonObject]()
    facts: list[JsonValue] = [
        {"name": "size", "value": "large"},
        {"name": "loaves", "value": 2},
        {"name": "sliced", "value": True},
        "nothing",
    ]
    answer = {"summary": "Bread.", "successful": True, "sentiment": "neutral", "extracted_data": facts}

    class Strict(ScriptedLLM):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            formats.append(request.response_schema or {})
            yield TextDelta(json.dumps(answer))

    @asynccontextmanager
    async def strict(*_: object) -> AsyncIterator[Strict]:
        yield Strict(ProviderSettings())

    monkeypatch.setattr(analysis, "open_agent_model", strict)
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    assert (await create_analyzed_call(runtime, caller, agent["id"]))["extracted_data"] == {
        "size": "large",
        "loaves": 2,
        "sliced": True,
    }
    assert not re.search(r'"additionalProperties": (?!false)', json.dumps(formats))


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({}, "extraction_schema.properties"),
        ({"properties": {}}, "extraction_schema.properties"),
        ({"properties": {"a": {"type": "object"}}}, "extraction_schema.properties.a.type"),
        ({"properties": {"a": {"type": "string", "format": "date"}}}, "extraction_schema.properties.a.format"),
        ({"properties": {"a b": {"type": "string"}}}, "extraction_schema.properties.a b.[key]"),
    ],
)
async def test_an_unusable_schema_is_refused_by_field(caller: Caller, schema: JsonValue, field: str) -> None:
    response = await caller.post("/v1/agents", {"name": "Agent", "extraction_schema": schema})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, field)


async def test_the_analysis_cost_is_part_of_the_call_and_a_separate_entry(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dear(ScriptedLLM):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            async for event in super().chat(request):
                yield replace(event, cost=0.25) if isinstance(event, ModelUsage) else event

    @asynccontextmanager
    async def dear(*_: object) -> AsyncIterator[Dear]:
        yield Dear(ProviderSettings())

    monkeypatch.setattr(analysis, "open_agent_model", dear)
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    call = await create_analyzed_call(runtime, caller, agent["id"])
    assert (call["cost_total"], call["costs"]) == (0.25, {"analysis": 0.25})
    assert (await caller.get("/v1/billing/balance")).json["balance"] == -0.25
    await analyze(runtime, caller, UUID(str(call["id"])))
    assert (await caller.get("/v1/billing/balance")).json["balance"] == -0.25


async def test_workers_ask_for_an_analysis_once(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of a call that has ended, and the reconcilers of two workers, find the same calls."""
    asked = 0

    class Counting(ScriptedLLM):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            nonlocal asked
            asked += 1
            async for event in super().chat(request):
                yield event

    @asynccontextmanager
    async def counting(*_: object) -> AsyncIterator[Counting]:
        yield Counting(ProviderSettings())

    monkeypatch.setattr(analysis, "open_agent_model", counting)
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    ended = [await create_ended_call(runtime, caller, agent["id"]) for _ in range(5)]
    await asyncio.gather(
        *(do_due_work(runtime, analyze_call) for _ in range(2)),
        *(analyze(runtime, caller, call_id) for call_id in ended),
    )
    assert asked == len(ended)
