"""Notice and consent over the line: the loopback carrier's calls, their recordings, and what the API keeps of them."""

import io
import wave

import numpy as np
from switchboard.plugin_sdk.audio import Samples
from switchboard.resources.calls.recordings.spool import build_spool_path
from switchboard.resources.identity.policy import Policy

from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at, text_at
from tests.fixtures.monitors import Telephone, connect_telephone

FRAMES_PER_SECOND = 50


async def set_disclosure(live: LivePlatform, disclosure: object) -> None:
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"disclosure": disclosure})
    assert changed.status == 200, changed.body


async def get_call(caller: Caller, call_id: object) -> Json:
    return (await caller.get(f"/v1/calls/{call_id}")).json


async def wait_for_transcript(telephone: Telephone, live: LivePlatform, text: str) -> list[Json]:
    """Let time pass on the line until the transcript has a text."""
    for _ in range(40 * FRAMES_PER_SECOND):
        await telephone.phone.wait(0.2)
        lines = await list_lines(live.caller, telephone.call_id)
        if any(text in str(line["content"]) for line in lines):
            return lines
    raise AssertionError(f"nobody said {text}")


async def list_lines(caller: Caller, call_id: object) -> list[Json]:
    return objects_at((await caller.get(f"/v1/calls/{call_id}/transcript")).json, "items")


async def read_recording(live: LivePlatform, call_id: object) -> Samples:
    await eventually(lambda: get_call(live.caller, call_id), lambda call: call["recording_url"])
    content = (await live.caller.get(f"/v1/calls/{call_id}/recording")).body
    with wave.open(io.BytesIO(content)) as file:
        frames = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)
    return np.abs(frames.astype(np.int16))


async def wait_for_end(live: LivePlatform, call_id: object) -> Json:
    return await eventually(lambda: get_call(live.caller, call_id), lambda call: call["ended_at"])


async def test_a_key_consents_and_the_recording_has_the_caller_from_then_on(live: LivePlatform) -> None:
    await set_disclosure(live, {"ai_notice": True, "countries": {"US": {"ai_notice": True, "consent": "ask"}}})
    async with connect_telephone(live) as telephone:
        spooled = build_spool_path(live.runtime.settings, live.caller.organization_id, telephone.call_id)
        await wait_for_transcript(telephone, live, "May we record this call?")
        assert not spooled.exists()
        telephone.phone.press("1")
        lines = await wait_for_transcript(telephone, live, "this is the bakery")
        await telephone.phone.wait(2)
    call = await wait_for_end(live, telephone.call_id)
    consent = call["consent"]
    assert isinstance(consent, dict)
    assert {name: consent[name] for name in ("rules", "place", "mode", "answer", "by", "heard")} == {
        "rules": ["agent: countries.US"],
        "place": "US",
        "mode": "ask",
        "answer": True,
        "by": "keypad",
        "heard": "1",
    }
    assert "artificial intelligence" in str(consent["notice"])
    assert str(consent["asked_at"]) < str(consent["answered_at"])
    offset = consent["recording_offset_ms"]
    assert isinstance(offset, int)
    samples = await read_recording(live, telephone.call_id)
    assert samples[: offset * 8, 0].max() == 0
    assert samples[: offset * 8, 1].max() > 1000, "the notice is in the recording"
    contents = [str(line["content"]) for line in lines]
    assert contents.index("DTMF: 1") < contents.index("The other party consented to the recording.")


async def test_a_spoken_yes_is_understood_offline_and_the_agent_is_called_as_before(live: LivePlatform) -> None:
    await set_disclosure(live, {"consent": "ask"})
    rung = await live.simulate_call("yes of course", "what are your opening hours", "goodbye")
    assert rung.answered
    calls = await eventually(
        lambda: live.caller.get("/v1/calls"), lambda found: objects_at(found.json, "items")[0]["ended_at"]
    )
    call = objects_at(calls.json, "items")[0]
    said = [str(line["content"]) for line in await list_lines(live.caller, call["id"])]
    assert (at(call, "consent", "answer"), at(call, "consent", "by")) == (True, "speech"), said
    assert any("from seven to six" in text for text in said), said


async def test_a_refusal_leaves_no_recording_and_ends_the_call_if_configured(live: LivePlatform) -> None:
    await set_disclosure(live, {"consent": "ask", "without_consent": "end_call", "texts": {"goodbye": "So long."}})
    async with connect_telephone(live) as telephone:
        await wait_for_transcript(telephone, live, "May we record this call?")
        telephone.phone.press("2")
        await wait_for_transcript(telephone, live, "So long.")
        call = await wait_for_end(live, telephone.call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "no_consent")
    assert (at(call, "consent", "answer"), at(call, "consent", "recording_offset_ms")) == (False, None)
    assert call["recording_url"] is None
    assert (await live.caller.get(f"/v1/calls/{telephone.call_id}/recording")).status == 404
    settings = live.runtime.settings
    assert not build_spool_path(settings, live.caller.organization_id, telephone.call_id).exists()
    assert not [path for path in settings.data_dir.rglob("*") if str(telephone.call_id) in path.name]


async def test_the_organization_can_demand_a_notice_of_every_agent(
    live: LivePlatform, organizations: Organizations
) -> None:
    """An agent can add to what the tenant file demands, and not go below it. A preset names its date."""
    policy = Policy.model_validate({"disclosure": {"presets": ["us-ut"], "consent": "notice"}})
    live = await create_bakery(live.runtime, await organizations.create(policy=policy), fresh_number())
    await set_disclosure(live, {"ai_notice": False, "consent": "none"})
    async with connect_telephone(live) as telephone:
        await wait_for_transcript(telephone, live, "this is the bakery")
    call = await wait_for_end(live, telephone.call_id)
    assert at(call, "consent", "rules") == ["organization: preset us-ut of 2026-11-22"]
    assert at(call, "consent", "mode") == "none"
    assert "artificial intelligence" in text_at(call, "consent", "notice")


async def test_without_a_disclosure_a_call_has_no_consent_and_is_recorded_from_its_beginning(
    live: LivePlatform,
) -> None:
    async with connect_telephone(live) as telephone:
        lines = await wait_for_transcript(telephone, live, "this is the bakery")
    assert [line["role"] for line in lines] == ["agent"]
    assert (await wait_for_end(live, telephone.call_id))["consent"] is None
    assert (await read_recording(live, telephone.call_id))[:, 1].max() > 1000
