"""Calls, text messages, and phone numbers over every carrier, with real callbacks, media sockets, and audio."""

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk import OutboundCall, ProviderSettings, TelephonyProvider
from switchboard.plugin_sdk.telephony_events import CallEvent
from switchboard.resources.calls import dialing
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.calls.jobs import confirm_call
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.carriers.lines import (
    PERSON,
    Line,
    enter_number,
    open_loopback_line,
    open_plivo_line,
    open_sip_line,
    open_telnyx_line,
    open_twilio_line,
    wait_for_message_status,
)
from tests.carriers.vendor import Vendor
from tests.fixtures.app import LivePlatform, Organizations, fresh_number
from tests.fixtures.work import do_due_work

Provider: TypeAlias = TelephonyProvider[ProviderSettings]
CLOSED = {"enabled": True, "slots": [{"days": ["mon"], "start": "00:00", "end": "00:01"}], "outside_action": "forward"}
# Matches anything that the caller is understood to say.
CONNECTS = (
    'When the caller says "thank you" or "hello" or "help" or "goodbye": '
    'call transfer_call(to_number="+15550100001")\n'
    'Otherwise: call transfer_call(to_number="+15550100001")'
)
INTRODUCTION = "Ada is on the line, about an order of bread."
OTHERS = ("+15550100002", "+15550100003", "+15550100004", "+15550100005", "+15550100006", "+15550100007")
MACHINE = "+15550100030"

CARRIERS = ("loopback", "twilio", "telnyx", "plivo", "sip")


@pytest_asyncio.fixture(params=CARRIERS)
async def line(request: pytest.FixtureRequest, runtime: Runtime, organizations: Organizations) -> AsyncIterator[Line]:
    """Each carrier in turn."""
    if request.param == "loopback":
        async with open_loopback_line(runtime, organizations) as line:
            yield line
    elif request.param == "telnyx":
        async with open_telnyx_line(runtime, organizations) as (line, _):
            yield line
    elif request.param == "sip":
        async with open_sip_line(runtime, organizations) as line:
            yield line
    elif request.param == "plivo":
        async with open_plivo_line(runtime, organizations) as (line, _):
            yield line
    else:
        async with open_twilio_line(runtime, organizations) as (line, _):
            yield line


async def wait_for_call_from(live: LivePlatform, number: str, *, analyzed: bool = False) -> dict[str, Any]:
    """Return the only call from a number, once it is over."""
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    (call,) = [item for item in items if item["from_number"] == number]
    return await live.wait_for_end(call["id"], analyzed=analyzed)


async def list_transcript(live: LivePlatform, call_id: object) -> list[tuple[str, str]]:
    items: Any = (await live.caller.get(f"/v1/calls/{call_id}/transcript")).json["items"]
    return [(entry["role"], entry["content"]) for entry in items]


async def buy_number(line: Line, area_code: str, **settings: object) -> str:
    """Buy a number found by a search, or enter one of a trunk, with these settings.

    Each carrier gets another number, because the tests share a database.
    """
    caller = line.live.caller
    if line.carrier == "sip":
        number = await enter_number(caller, fresh_number(), line.live.agent_id)
        assert (await caller.send("PUT", f"/v1/phone-numbers/{number['id']}", settings)).status == 200
        return str(number["phone_number"])
    search = await caller.post("/v1/phone-numbers/search", {"country": "US", "area_code": area_code})
    items: Any = search.json["items"]
    chosen = items[CARRIERS.index(line.carrier)]
    assert chosen["phone_number"].startswith(f"+1{area_code}555")
    assert chosen["monthly_cost"] == 1.15
    response = await caller.post(
        "/v1/phone-numbers", {"phone_number": chosen["phone_number"], "inbound_agent_id": line.live.agent_id}
    )
    assert (response.status, response.json["status"]) == (201, "active"), response.body
    assert (await caller.send("PUT", f"/v1/phone-numbers/{response.json['id']}", settings)).status == 200
    return str(chosen["phone_number"])


async def test_inbound_calls(line: Line) -> None:
    """Inbound calls to newly bought numbers.

    One is a conversation, three are transferred, and two arrive outside opening hours: one is forwarded, one refused.
    """
    conflict = await line.live.caller.post("/v1/phone-numbers", {"phone_number": "+13125550199"})
    assert (conflict.status, conflict.json["code"]) == (502, "provider_error")
    operator = {
        "name": "Operator",
        "system_prompt": CONNECTS,
        "greeting_message": "Hello, to whom do you want to speak?",
    }
    connects = await buy_number(
        line, "212", inbound_agent_id=(await line.live.caller.post("/v1/agents", operator)).json["id"]
    )
    forwards = await buy_number(line, "312", schedule=CLOSED, forward_number=PERSON)
    refuses = await buy_number(line, "415", schedule={**CLOSED, "outside_action": "hangup"})
    introduces, stays = await _create_operator(line, "213", PERSON), await _create_operator(line, "313", "+15550100020")
    not_accepted = await _create_operator(line, "510", MACHINE)
    talked, transferred, forwarded, refused = await asyncio.gather(
        line.simulate_call("What are your opening hours?", "Goodbye"),
        line.people.simulate_call(OTHERS[0], connects, ["Thank you", "I would like to order bread"]),
        line.people.simulate_call(OTHERS[1], forwards, ["Thank you"]),
        line.people.simulate_call(OTHERS[2], refuses, ["Thank you"]),
    )
    introduced, *_ = await asyncio.gather(
        line.people.simulate_call(OTHERS[3], introduces, ["Thank you", "I would like to order bread"]),
        line.people.simulate_call(OTHERS[4], stays, ["Thank you"]),
        line.people.simulate_call(OTHERS[5], not_accepted, ["Thank you"]),
    )
    call = await wait_for_call_from(line.live, PERSON, analyzed=True)
    assert (call["status"], call["direction"], call["ended_reason"]) == ("completed", "inbound", "agent_hung_up")
    assert call["call_successful"] is True
    assert call["latencies"]
    offline = {"speech_to_text": "pocketsphinx", "text_to_speech": "espeak", "llm": "scripted", "analysis": "scripted"}
    assert call["served_by"] == {"telephony": line.carrier, **offline}
    assert talked.first_reply_ms is not None
    transcript = [entry for entry in await list_transcript(line.live, call["id"]) if entry[0] != "tool"]
    assert transcript[0] == ("agent", "Hello , this is the bakery on the corner.")
    # On a busy machine the agent's audio has gaps, in which the caller takes it to be silent, and goes on.
    assert any(role == "agent" and text.startswith("We are open from seven") for role, text in transcript)
    assert "user" in [role for role, _ in transcript]
    await _check_recording(line, call["id"], talked.duration_seconds)
    call = await wait_for_call_from(line.live, OTHERS[0])
    transcript = await list_transcript(line.live, call["id"])
    assert (call["status"], call["ended_reason"], call["transferred_to"]) == ("completed", "transferred", PERSON), (
        transcript
    )
    assert transferred.heard_seconds > 1
    assert forwarded.answered
    call = await wait_for_call_from(line.live, OTHERS[1])
    assert (call["status"], call["ended_reason"], call["transferred_to"]) == ("completed", "transferred", PERSON)
    assert not refused.answered
    assert (await wait_for_call_from(line.live, OTHERS[2]))["status"] == "failed"
    await _check_introductions(line, introduced.heard_seconds)


async def _create_operator(line: Line, area_code: str, target: str) -> str:
    """Return a number whose agent transfers callers to the target, with an introduction."""
    prompt = CONNECTS.replace(PERSON, f'{target}", introduction="{INTRODUCTION}')
    operator = {"name": "Operator", "system_prompt": prompt, "greeting_message": "Hello, to whom do you want to speak?"}
    return await buy_number(
        line, area_code, inbound_agent_id=(await line.live.caller.post("/v1/agents", operator)).json["id"]
    )


async def _check_introductions(line: Line, heard_seconds: float) -> None:
    """Check three warm transfers: one target talks with the caller in the end; one is busy, one a machine that does not
    accept, and their callers stayed with the agent.
    """
    call = await wait_for_call_from(line.live, OTHERS[3])
    transcript = await list_transcript(line.live, call["id"])
    assert (call["status"], call["ended_reason"], call["transferred_to"]) == ("completed", "transferred", PERSON), (
        transcript
    )
    assert heard_seconds > 1
    for caller in OTHERS[4:]:
        call = await wait_for_call_from(line.live, caller)
        transcript = await list_transcript(line.live, call["id"])
        ended = (call["status"], call["ended_reason"], call["transferred_to"])
        assert ended == ("completed", "caller_hung_up", None), transcript
        assert ("agent", "I am sorry, that did not work.") in transcript
    if isinstance(line.people, Vendor):
        assert set(line.people.introductions) == {f"{INTRODUCTION} Press one to accept the call."}


async def _check_recording(line: Line, call_id: object, seconds: float) -> None:
    path = f"/v1/calls/{call_id}/recording"
    with wave.open(io.BytesIO(await line.live.wait_for_recording(call_id))) as file:
        assert (file.getnchannels(), file.getframerate()) == (2, 8000)
        # On a busy machine, a second passes between the platform's answer and the caller's first audio.
        assert abs(file.getnframes() / 8000 - seconds) < 2
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2).astype(np.int32)
    assert (np.abs(samples).max(axis=0) > 1000).all()
    part = await line.live.caller.send("GET", path, Range="bytes=0-43")
    assert (part.status, part.body[:4], len(part.body)) == (206, b"RIFF", 44)


@pytest.mark.parametrize("carrier_detection", [True, False])
async def test_a_message_is_left_on_voicemail(line: Line, carrier_detection: bool) -> None:
    policy: JsonValue = {
        "action": "leave_message",
        "message": "Hello {{customer}}, this is the bakery.",
        "carrier_detection": carrier_detection,
    }
    path = f"/v1/agents/{line.live.agent_id}"
    assert (await line.live.caller.send("PUT", path, {"voicemail_policy": policy})).status == 200
    call = await line.live.place_call("+15550100030", metadata={"customer": "Ada"})
    finished = await line.live.wait_for_end(call["id"])
    assert (finished["status"], finished["ended_reason"]) == ("completed", "voicemail")
    assert (await list_transcript(line.live, call["id"]))[-1] == ("agent", "Hello Ada, this is the bakery.")


async def test_without_a_voicemail_policy_the_agent_talks_to_machines(line: Line) -> None:
    path = f"/v1/agents/{line.live.agent_id}"
    await line.live.caller.send("PUT", path, {"voicemail_policy": {"action": "off"}})
    finished = await line.live.wait_for_end((await line.live.place_call("+15550100030"))["id"])
    assert (finished["status"], finished["ended_reason"]) == ("completed", "caller_hung_up")


async def test_outbound_calls(line: Line) -> None:
    """Calls to every kind of callee at once; a callee who does not answer is called for one second."""
    whole = "Hello Ada, this is the bakery on the corner. We bake bread, rolls, and cakes every morning of the week."
    settings: JsonValue = {"interruption_min_words": 0, "greeting_message": whole.replace("Ada", "{{customer}}")}
    await line.live.caller.send("PUT", f"/v1/agents/{line.live.agent_id}", settings)
    expected = {
        "20": ("busy", None),
        "21": ("no-answer", None),
        "22": ("failed", None),
        "23": ("failed", None),
        "24": ("failed", None),
        "30": ("completed", "voicemail"),
        "40": ("completed", "caller_hung_up"),
        "41": ("completed", "caller_hung_up"),
        "50": ("completed", "caller_hung_up"),
    }

    async def call(digits: str) -> dict[str, Any]:
        placed = await line.live.place_call(f"+155501000{digits}", metadata={"customer": "Ada"})
        return await line.live.wait_for_end(placed["id"])

    called = (*expected, "60")
    finished = dict(zip(called, await asyncio.gather(*map(call, called)), strict=True))
    assert {digits: (finished[digits]["status"], finished[digits]["ended_reason"]) for digits in expected} == expected
    explained = {digits for digits, call in finished.items() if call["error_message"]}
    assert explained == {"22", "23", "24", *(["20"] if line.carrier == "sip" else [])}
    assert ("user", "DTMF: 123") in await list_transcript(line.live, finished["50"]["id"])
    assert finished["60"]["status"] == "completed"
    greeting = (await list_transcript(line.live, finished["60"]["id"]))[0][1]
    assert whole.startswith(greeting), "who breaks in stops the agent"
    assert 0 < len(greeting) < len(whole)


async def test_a_crash_between_claim_and_answer_is_reconciled(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The carrier has the call, the platform does not know it, and no callback has arrived.

    A carrier that can search by reference reports it, and nobody is called twice.
    """
    live, crashed, searched = line.live, asyncio.Event(), asyncio.Event()
    async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider, line.carrier) as provider:
        kind = type(provider)
    place, apply = kind.place_call, CarrierEventHandler.apply_call_event

    async def place_and_crash(provider: Provider, order: OutboundCall) -> str:
        assert not crashed.is_set(), "a call is placed once"
        await place(provider, order)
        crashed.set()
        raise RuntimeError("the worker has crashed")

    async def apply_late(
        handler: CarrierEventHandler, organization_id: UUID, carrier: str, event: CallEvent, *, call_id: UUID | None
    ) -> None:
        await searched.wait()
        await apply(handler, organization_id, carrier, event, call_id=call_id)

    monkeypatch.setattr(kind, "place_call", place_and_crash)
    monkeypatch.setattr(CarrierEventHandler, "apply_call_event", apply_late)
    call_id = UUID(str((await live.place_call("+15550100020"))["id"]))
    async with asyncio.timeout(60):
        await crashed.wait()
    async with live.runtime.database.write(live.caller.organization_id) as session:
        call = await lock_row(session, Call, call_id)
        assert (call.status, call.carrier_call_id) == ("queued", None)
        call.watch_at = now()
    await do_due_work(live.runtime, confirm_call)
    searched.set()
    finished = await live.wait_for_end(call_id)
    # Twilio and Plivo have no search by reference, so later callbacks concern a call that nobody owns any more.
    assert (finished["status"], finished["error_message"]) == (
        ("failed", dialing.PLACEMENT_UNKNOWN)
        if line.carrier in ("twilio", "plivo")
        else ("busy", "the destination is busy (SIP 486)" if line.carrier == "sip" else None)
    )


async def test_outbound_and_inbound_messages(line: Line) -> None:
    caller, number = line.live.caller, line.live.number_id
    requests = [
        (await caller.post("/v1/sms", {"to_number": f"+155501000{to}", "from_number_id": number, "body": "Hello"})).json
        for to in ("01", "80", "82")
    ]
    if line.carrier == "sip":  # which has no receipts
        await wait_for_message_status(line.live, requests[0], "sent")
    else:
        assert (await wait_for_message_status(line.live, requests[0], "delivered"))["error_message"] is None
        assert (await wait_for_message_status(line.live, requests[1], "undelivered"))["error_message"]
    assert (await wait_for_message_status(line.live, requests[2], "failed"))["error_message"]
    await line.people.text(PERSON, line.live.number, "Stop")
    response = await caller.post("/v1/sms", {"to_number": PERSON, "from_number_id": number, "body": "Hello?"})
    assert (response.status, response.json["code"]) == (409, "recipient_opted_out")
