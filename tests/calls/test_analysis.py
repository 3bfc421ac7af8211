"""Analysis of calls after their end."""

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
from switchboard.resources.calls.after import analysis
from switchboard.resources.calls.models import TranscriptLine
from switchboard.runtime import Runtime
from switchboard_offline.scripted import ScriptedLLM

from tests.fixtures.app import Caller
from tests.fixtures.calls import add_call
from tests.fixtures.json_access import Json, at

SAID = "Good day, my name is Ada Lovelace, write to ada@example.com please."


async def analysed(runtime: Runtime, caller: Caller, agent_id: JsonValue) -> Json:
    """A call of an agent in which this was said, once it has been analysed."""
    await add_call(runtime, caller, now(), agent_id=UUID(str(agent_id)), analysis_due_at=now())
    call = at((await caller.get("/v1/calls")).json, "items", 0)
    call_id = UUID(str(at(call, "id")))
    async with runtime.database.tenant(caller.organization_id) as session:
        session.add(
            TranscriptLine(
                organization_id=caller.organization_id,
                call_id=call_id,
                position=0,
                role="user",
                content=SAID,
                timestamp_ms=0,
                ended_ms=1000,
            )
        )
    await analysis.run_analysis(runtime, caller.organization_id, call_id)
    return (await caller.get(f"/v1/calls/{call_id}")).json


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (None, {"name": "Ada Lovelace", "email": "ada@example.com"}),
        ({"properties": {"email": {"type": "string"}, "age": {"type": "integer"}}}, {"email": "ada@example.com"}),
        ({"properties": {"name": {"type": "number"}}}, {}),
        ({"properties": {"name": {"type": "string", "enum": ["Charles"]}}}, {}),
    ],
)
async def test_an_agent_says_what_is_to_be_found_out(
    runtime: Runtime, caller: Caller, schema: JsonValue, found: Json
) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Agent", "extraction_schema": schema})).json
    assert (agent["extraction_schema"] is None) == (schema is None)
    call = await analysed(runtime, caller, agent["id"])
    assert call["extracted_data"] == found
    assert "by rules" in str(call["call_summary"])
    assert call["served_by"] == {"analysis": "scripted"}


async def test_facts_are_asked_for_so_that_every_vendor_can_answer(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anthropic holds a model to objects whose names are in the schema: an open one it would leave empty."""
    asked = list[JsonObject]()
    facts: list[JsonValue] = [
        {"name": "size", "value": "large"},
        {"name": "loaves", "value": 2},
        {"name": "sliced", "value": True},
        "nothing",
    ]
    answer = {"summary": "Bread.", "successful": True, "sentiment": "neutral", "extracted_data": facts}

    class Strict(ScriptedLLM):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            asked.append(request.response_schema or {})
            yield TextDelta(json.dumps(answer))

    @asynccontextmanager
    async def strict(*_: object) -> AsyncIterator[Strict]:
        yield Strict(ProviderSettings())

    monkeypatch.setattr(analysis, "open_agent_model", strict)
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    assert (await analysed(runtime, caller, agent["id"]))["extracted_data"] == {
        "size": "large",
        "loaves": 2,
        "sliced": True,
    }
    assert not re.search(r'"additionalProperties": (?!false)', json.dumps(asked))


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
async def test_a_schema_that_cannot_be_used_is_refused_by_the_field(
    caller: Caller, schema: JsonValue, field: str
) -> None:
    answer = await caller.post("/v1/agents", {"name": "Agent", "extraction_schema": schema})
    assert (answer.status, at(answer.json, "errors", 0, "field")) == (422, field)


async def test_what_the_analysis_costs_is_a_part_of_the_call_and_an_entry_of_its_own(
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
    call = await analysed(runtime, caller, agent["id"])
    assert (call["cost_total"], call["costs"]) == (0.25, {"analysis": 0.25})
    assert (await caller.get("/v1/billing/balance")).json["balance"] == -0.25
    await analysis.run_analysis(runtime, caller.organization_id, UUID(str(call["id"])))
    assert (await caller.get("/v1/billing/balance")).json["balance"] == -0.25
