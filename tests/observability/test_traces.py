"""Traces over the wire: real processes, an OTLP receiver, and a webhook receiver."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from pydantic import JsonValue

from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.receiver import Receiver
from tests.fixtures.span_receiver import ReceivedSpan, SpanReceiver

CLIENTS_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{CLIENTS_TRACE}-00f067aa0ba902b7-01"
PROMPT = """\
When the caller says "who is speaking": call find_order(number="17")
When the caller says "goodbye": say "Goodbye." and call find_order(number="17")"""
SPANS_OF_A_CALL = {
    "call",
    "dial",
    "place_call loopback",
    "conversation",
    "transcribe pocketsphinx",
    "turn",
    "endpointing",
    "transcription",
    "model",
    "speech synthesis",
    "first audio",
    "chat scripted",
    "synthesize espeak",
    "execute_tool find_order",
    "POST",
    "recording upload",
    "analysis",
    "deliver call.completed",
    "deliver call.transcript.ready",
}
STOP_SECONDS = 20.0
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


class TracedPlatform:
    """The platform in processes of its own, with an agent that has a tool, and a webhook endpoint."""

    def __init__(self, session: aiohttp.ClientSession, process: asyncio.subprocess.Process) -> None:
        self.session = session
        self.process = process
        self._call: Json = {}

    async def create_agent(self, receiver: Receiver) -> None:
        tool: Json = {"name": "find_order", "description": "Find an order.", "url": f"{receiver.url}/tool"}
        tool["parameters"] = {"type": "object", "properties": {"number": {"type": "string"}}}
        agent = await self.send("POST", "/v1/agents", {"name": "Traced", "system_prompt": PROMPT, "tools": [tool]})
        numbers = await self.send("GET", "/v1/phone-numbers")
        number = objects_at(numbers, "items")[0]
        await self.send("POST", "/v1/webhook-endpoints", {"url": f"{receiver.url}/hook"})
        self._call = {"agent_id": agent["id"], "from_number_id": number["id"], "to_number": "+15550100001"}

    async def send(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"traceparent": TRACEPARENT}
        async with self.session.request(method, path, json=body, headers=headers) as response:
            assert response.status < 300, await response.text()
            document: Json = await response.json()
            return document

    async def place_call(self) -> str:
        return str((await self.send("POST", "/v1/calls", self._call))["id"])

    async def wait_for_words(self, call_id: str) -> None:
        async def look() -> JsonValue:
            async with self.session.get(f"/v1/calls/{call_id}/transcript") as response:
                found: JsonValue = await response.json()
                return found

        await eventually(look)

    async def wait_for_analysis(self, call_id: str) -> Json:
        async def look() -> Json:
            return await self.send("GET", f"/v1/calls/{call_id}")

        return await eventually(look, lambda call: call["call_summary"] is not None)

    async def list_words(self, call_id: str) -> list[JsonValue]:
        lines = objects_at(await self.send("GET", f"/v1/calls/{call_id}/transcript"), "items")
        return [line["content"] for line in lines]

    async def wait_for_recording(self, call_id: str) -> None:
        async def look() -> Json:
            return await self.send("GET", f"/v1/calls/{call_id}")

        await eventually(look, lambda call: call["recording_url"] is not None)


@asynccontextmanager
async def run_traced_platform(folder: Path, endpoint: str, **variables: str) -> AsyncIterator[TracedPlatform]:
    environment = {
        **os.environ,
        "SWITCHBOARD_DATA_DIR": str(folder / "data"),
        "SWITCHBOARD_PORT": str(find_free_port()),
        "SWITCHBOARD_TENANTS_DIR": str(folder),
        "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        **variables,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "switchboard", "run", env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    draining = None
    try:
        while b"is ready" not in await process.stderr.readline():
            pass
        draining = asyncio.create_task(process.stderr.read())
        facts = json.loads((folder / "data" / "dev.json").read_text())
        credential = {"Authorization": f"Bearer {facts['api_key']}"}
        async with aiohttp.ClientSession(facts["base_url"], headers=credential) as session:
            yield TracedPlatform(session, process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        if draining is not None:
            await draining


@pytest.mark.system
async def test_a_call_is_one_trace_in_all_processes_and_at_its_receivers(
    tmp_path: Path, span_receiver: SpanReceiver, receiver: Receiver
) -> None:
    async with run_traced_platform(tmp_path, span_receiver.url) as platform:
        await platform.create_agent(receiver)
        call_id = await _place_call_that_uses_the_tool(platform, receiver)
        trace_id = call_id.replace("-", "")

        async def list_names() -> set[str]:
            return {span.name for span in span_receiver.of_trace(trace_id)}

        await eventually(list_names, lambda names: names >= SPANS_OF_A_CALL)
        spans = span_receiver.of_trace(trace_id)
        _check_tree(spans, trace_id)
        assert {span.service for span in spans} == {"switchboard-serve", "switchboard-worker"}
        _check_privacy(span_receiver.spans)

        tool_requests = receiver.at("/tool")
        deliveries = [
            hook
            for hook in receiver.at("/hook")
            if hook.headers["X-Webhook-Event"].startswith("call.") and call_id.encode() in hook.body
        ]
        assert deliveries
        posts = {span.span_id for span in spans if span.name == "POST"}
        for request in (*tool_requests, *deliveries):
            version, trace, parent, flags = request.headers["traceparent"].split("-")
            assert (version, trace, flags) == ("00", trace_id, "01")
            assert parent in posts

        (created,) = [span for span in span_receiver.of_trace(CLIENTS_TRACE) if span.linked_traces == (trace_id,)]
        assert created.name == "POST /v1/calls"
        assert created.attributes["http.response.status_code"] == "int_value: 201"


async def _place_call_that_uses_the_tool(platform: TracedPlatform, receiver: Receiver) -> str:
    """Call until the agent has used its tool, whatever the recognizer understands on a busy machine."""
    for _ in range(4):
        call_id = await platform.place_call()
        call = await platform.wait_for_analysis(call_id)
        assert call["status"] == "completed"
        if receiver.at("/tool"):
            return call_id
    raise AssertionError(f"the agent never used its tool: {await platform.list_words(call_id)}")


def _check_tree(spans: list[ReceivedSpan], trace_id: str) -> None:
    (root,) = [span for span in spans if not span.parent_id]
    assert (root.name, root.span_id) == ("call", trace_id[16:])
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert not [span for span in spans if span.parent_id and span.parent_id not in by_id]
    parents = {(span.name, by_id[span.parent_id].name) for span in spans if span.parent_id}
    assert parents >= {
        ("conversation", "call"),
        ("turn", "conversation"),
        ("first audio", "turn"),
        ("chat scripted", "turn"),
        ("synthesize espeak", "turn"),
        ("execute_tool find_order", "turn"),
        ("POST", "execute_tool find_order"),
        ("place_call loopback", "dial"),
        ("chat scripted", "analysis"),
        ("deliver call.completed", "call"),
        ("POST", "deliver call.completed"),
    }
    assert not [span.name for span in spans if span.failed]
    for span in spans:
        if span.name in ("turn", "conversation", "dial", "analysis"):
            assert 0 < span.seconds < 60, span


def _check_privacy(spans: list[ReceivedSpan]) -> None:
    values = "\n".join(value for span in spans for value in (span.name, *span.attributes.values()))
    for private in ("+1555", "%2B1555", "speaking", "Traced", "whsec_", "127.0.0.1:"):
        assert private not in values


@pytest.mark.system
async def test_a_receiver_that_fails_hangs_or_is_killed_harms_nothing(
    tmp_path: Path, span_receiver: SpanReceiver, receiver: Receiver
) -> None:
    async with run_traced_platform(tmp_path, span_receiver.url, OTEL_BSP_MAX_QUEUE_SIZE="512") as platform:
        await platform.create_agent(receiver)
        for status in (500, None):
            span_receiver.status = status
            call = await platform.wait_for_analysis(await platform.place_call())
            assert call["status"] == "completed"
        span_receiver.status = 200
        call_id = await platform.place_call()
        await platform.wait_for_words(call_id)
        await span_receiver.kill()
        call = await platform.wait_for_analysis(call_id)
        assert call["status"] == "completed"
        await platform.wait_for_recording(call_id)
        began = time.perf_counter()
        platform.process.send_signal(signal.SIGTERM)
        await platform.process.wait()
        assert time.perf_counter() - began < STOP_SECONDS


@pytest.mark.system
async def test_a_sampled_out_call_has_no_span_and_no_traceparent(
    tmp_path: Path, span_receiver: SpanReceiver, receiver: Receiver
) -> None:
    nothing = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}
    async with run_traced_platform(tmp_path, span_receiver.url, **nothing) as platform:
        await platform.create_agent(receiver)
        call_id = await platform.place_call()
        await platform.wait_for_analysis(call_id)
        await receiver.until(lambda: len(receiver.at("/hook")) >= 2)
        assert not [request for request in receiver.received if "traceparent" in request.headers]

        async def list_requests() -> list[ReceivedSpan]:
            return span_receiver.of_trace(CLIENTS_TRACE)

        # The client has asked for its own requests.
        await eventually(list_requests)
    assert {span.trace_id for span in span_receiver.spans} == {CLIENTS_TRACE}


def test_a_protocol_that_is_not_supported_stops_the_start_with_one_line(operator: Operator) -> None:
    operator.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", PROTOCOL: "grpc"}
    result = operator.run("serve")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith(f"{PROTOCOL}: grpc is not supported; use http/protobuf")
