"""Probes on an agent's page: hearing a voice, building a tool's arguments in fields, and testing a tool."""

import asyncio
import json
import wave
from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from switchboard.plugin_sdk import SpeechChunk, SpeechRequest
from switchboard.resources.agents.voice_samples import SAMPLE_LIMIT
from switchboard_offline.espeak import EspeakTextToSpeech

from tests.dashboard.test_agents import create_agent
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.receiver import Receiver

SAMPLE = {"provider": "espeak", "voice": "", "text": "Good day, {{name}}"}


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def test_a_voice_is_heard_and_a_tool_built_from_fields(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents/new")
    await page.get_by_text("Hear the voices").click()
    voices = page.get_by_role("list", name="Voices")
    async with page.expect_response("**/voices/sample") as sample:
        await voices.get_by_role("button", name="Play").nth(1).click()
    assert (await sample.value).status == 200
    await voices.get_by_role("button", name="Use").nth(1).click()
    assert await page.get_by_label("Voice", exact=True).input_value()
    await page.get_by_role("button", name="Add a tool").click()
    tool = page.get_by_role("group", name="Tool 1")
    await tool.get_by_role("button", name="Add an argument").click()
    await tool.get_by_label("Name of the argument").fill("order_number")
    await tool.get_by_label("Description", exact=True).fill("Number of the order")
    schema = json.loads(await tool.get_by_label("Arguments (JSON schema)").input_value())
    assert schema["properties"] == {"order_number": {"type": "string", "description": "Number of the order"}}
    assert schema["required"] == ["order_number"]
    await tool.get_by_text("Test this tool").click()
    await window.check_accessibility()


async def fetch_sample(person: Person, **fields: str) -> tuple[int, bytes]:
    token = (await person.get("/dashboard/agents/new")).html.partition('name="csrf_token" value="')[2].partition('"')[0]
    response = await person.client.post(
        "/dashboard/agents/voices/sample", form={**SAMPLE, **fields, "csrf_token": token}, headers=person.headers
    )
    return response.status_code, await response.get_data(as_text=False)


async def test_a_sample_is_a_wav_file_and_kept(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: list[str] = []
    synthesize = EspeakTextToSpeech.synthesize

    def note(self: EspeakTextToSpeech, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        spoken.append(request.text)
        return synthesize(self, request)

    monkeypatch.setattr(EspeakTextToSpeech, "synthesize", note)
    for _ in range(2):
        status, sample = await fetch_sample(owner)
        assert status == 200
        with wave.open(BytesIO(sample)) as audio:
            assert audio.getnframes() > audio.getframerate() / 4
    assert spoken == ["Good day,"], "once: the second one is kept"
    assert (await fetch_sample(owner, provider="nobody"))[0] == 502
    # At once: Redis refills the limit in real time.
    samples = await asyncio.gather(*(fetch_sample(owner, text=f"{number}") for number in range(SAMPLE_LIMIT.burst + 2)))
    assert {status for status, _ in samples} == {200, 429}
    assert (await fetch_sample(owner))[0] == 200, "what is kept is not limited"


@pytest.mark.local_receivers
async def test_a_tool_test_shows_the_request_and_the_answer(
    owner: Person, people: People, caller: Caller, receiver: Receiver
) -> None:
    page = await create_agent(caller, webhook_secret="hush")
    tool = {"name": "find_order", "description": "Find.", "url": receiver.url}
    form: dict[str, str | list[str]] = {
        "agent_id": page.rpartition("/")[2],
        "tool": json.dumps(tool),
        "arguments": '{"number": "17"}',
    }
    shown = await owner.post("/dashboard/agents/tools/test", form)
    result = json.loads(shown.html)
    assert (shown.status, result["status"], result["error"]) == (200, 200, "")
    request = json.loads(result["request"])
    assert (request["tool"], request["arguments"], request["call_id"]) == ("find_order", {"number": "17"}, None)
    for fields, fault in (
        ({"arguments": "[]"}, "must be a JSON object"),
        ({"tool": json.dumps({**tool, "url": "http://10.0.0.1/"})}, "url"),
        ({"tool": json.dumps({**tool, "name": "end_call"})}, "built-in"),
    ):
        refused = await owner.post("/dashboard/agents/tools/test", {**form, **fields})
        assert (refused.status, fault in refused.html) == (422, True), refused.html
    assert (await owner.post("/dashboard/agents/tools/test", {**form, "agent_id": str(caller.key_id)})).status == 404
    member = await people.join(caller.organization_id, role="builder")
    assert (await member.post("/dashboard/agents/tools/test", form)).status == 403
    actions = [action for _, action, _ in await people.list_audit_entries(caller.organization_id)]
    assert actions.count("agent_tool.tested") == 1
