"""Behavior specific to Telnyx: call commands, lost responses, repeated and late webhooks, recordings, stream states,
and native digits.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import aiohttp
import pytest
import pytest_asyncio
from switchboard.engine.conversation import engine
from switchboard.foundation.database import now
from switchboard.resources.calls import service as calls
from switchboard.runtime import Runtime

from tests.carriers.checks import carriers_recording, is_opted_out, newest_pictures, purchase_is_repaired
from tests.carriers.lines import PERSON, Line, events_of, only_call, telnyx_line, text_with
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord, signed_headers, webhook
from tests.carriers.vendor import BROKEN, DONE
from tests.fixtures.app import LivePlatform, Organizations

TelnyxLine = tuple[Line, TelnyxServer]
NOBODY, QUICK = "+15550100020", "+15550100040"


@pytest_asyncio.fixture
async def at_telnyx(runtime: Runtime, organizations: Organizations) -> AsyncIterator[TelnyxLine]:
    async with telnyx_line(runtime, organizations, record_calls=True) as both:
        yield both


def _call_url(live: LivePlatform, call: dict[str, Any]) -> str:
    return f"{live.runtime.settings.base_url}/carriers/telnyx/{live.caller.organization_id}/calls/{call['id']}"


def _sent(telnyx: TelnyxServer, last: str) -> list[dict[str, object]]:
    return [sent for method, path, sent in telnyx.requests if method == "POST" and path.rpartition("/")[2] == last]


# --- calls ---


async def test_a_call_whose_acceptance_was_lost_is_held_once(at_telnyx: TelnyxLine) -> None:
    """Telnyx placed the call, and the connection broke or the response was a 500; or placing it failed.

    Webhooks report the call, and another carrier may be tried.
    """
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.failures["POST", "calls"] = [BROKEN]
    assert (await live.ended((await live.place("+15550100020"))["id"]))["status"] == "busy"
    assert len(_sent(telnyx, "calls")) == 1
    telnyx.failures["POST", "calls"] = [DONE, 500]
    both = [await live.place("+15550100040") for _ in range(2)]
    ended: list[Any] = [await live.ended(call["id"]) for call in both]
    assert [call["status"] for call in ended] == ["completed"] * 2
    async with asyncio.timeout(20):
        await telnyx.idle()
    assert telnyx.talked == sum(call["served_by"]["telephony"] == "telnyx" for call in ended)
    assert "loopback" in [call["served_by"]["telephony"] for call in ended]


async def test_webhooks_come_twice_late_and_in_any_order(at_telnyx: TelnyxLine) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.repeats = True
    placed = [await live.place(f"+155501000{digits}") for digits in ("20", "22", "40")]
    statuses = [(await live.ended(call["id"]))["status"] for call in placed]
    assert statuses == ["busy", "failed", "completed"]
    states = {str(sent["webhook_url"]): str(sent["client_state"]) for sent in _sent(telnyx, "calls")}
    for call, status in zip(placed, statuses, strict=True):
        async with live.runtime.database.tenant(live.caller.organization_id) as session:
            call_id = (await calls.get_call(session, UUID(str(call["id"])))).carrier_call_id or ""
        url = _call_url(live, call)
        late = telnyx.post(
            CallRecord("outgoing", live.number, PERSON, telnyx.connection_id, url, client_state=states[url], id=call_id)
        )
        await late.tell("call.hangup", hangup_cause="normal_clearing", sip_hangup_cause="200")
        await late.tell("call.answered", state="answered")
        await late.tell("call.machine.detection.ended", result="human")
        await late.tell("call.initiated", direction="outgoing", state="bridging")
        assert (await live.ended(call["id"]))["status"] == status
        names = await events_of(live, call["id"])
        assert len(names) == len(set(names)), names


async def test_calls_come_from_browsers_and_telephones_and_are_recorded(at_telnyx: TelnyxLine) -> None:
    """Browser calls reach agents, and dial out with the organization's numbers.

    The agent sends digits to a telephone, and Telnyx records that call.
    """
    (line, telnyx), live = at_telnyx, at_telnyx[0].live
    press = 'say "One moment." and call press_digits(digits="5#")'
    prompt = f'When the caller says "thank you" or "hello" or "goodbye": {press}\nOtherwise: {press}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt})

    async def dial(to_number: str, caller: str = "", **given: dict[str, str]) -> bool:
        return (await telnyx.call_from_browser("gencred", to_number, ["Goodbye"], caller=caller, **given)).answered

    to_agent = {"User-To-User": "x", "X-Switchboard-To": f"agent:{live.agent_id}"}
    _, *answered = await asyncio.gather(
        line.ring("Thank you"),
        dial(live.number),
        dial(QUICK, live.number),
        dial(QUICK, "+15550100009"),
        dial(QUICK),
        dial("sip:x", live.number),
        dial("sip:x", headers=to_agent),
    )
    assert answered == [True, True, False, False, False, True]
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    over: list[Any] = [await live.ended(item["id"]) for item in items]
    assert [call["agent_id"] for call in over].count(live.agent_id) == 3
    ended = {call["from_number"] + call["to_number"]: call for call in over}
    assert {name: (call["direction"], call["status"]) for name, call in ended.items()} == {
        live.number + live.number: ("inbound", "completed"), live.number + QUICK: ("outbound", "completed"),
        PERSON + live.number: ("inbound", "completed"),
    }  # fmt: skip
    assert "5#" in [sent["digits"] for sent in _sent(telnyx, "send_dtmf")]
    await carriers_recording(live, UUID(ended[PERSON + live.number]["id"]))
    token = await live.caller.post("/v1/browser-call/token")
    assert (token.status, token.json["provider"]) == (200, "telnyx"), token.body


async def test_who_cannot_be_forwarded_is_not_left_in_silence(at_telnyx: TelnyxLine) -> None:
    (line, telnyx), live = at_telnyx, at_telnyx[0].live
    closed = {
        "enabled": True,
        "slots": [{"days": ["mon"], "start": "00:00", "end": "00:01"}],
        "outside_action": "forward",
    }
    assert (
        await live.caller.send(
            "PUT", f"/v1/phone-numbers/{live.number_id}", {"schedule": closed, "forward_number": NOBODY}
        )
    ).status == 200
    assert not (await line.ring("Hello?")).answered
    assert len(_sent(telnyx, "hangup")) == 1
    assert (await only_call(live))["transferred_to"] == NOBODY


async def test_a_media_socket_needs_the_streams_state(at_telnyx: TelnyxLine, monkeypatch: pytest.MonkeyPatch) -> None:
    (line, telnyx), live = at_telnyx, at_telnyx[0].live
    monkeypatch.setattr(engine, "START_SECONDS", 0.5)
    telnyx.stream_start = {"client_state": "e30="}
    heard = await line.ring("Hello")
    call = await only_call(live)
    assert (call["status"], heard.heard_seconds) == ("failed", 0.0)
    assert (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"] == []


# --- texts and numbers ---


async def test_opt_outs_that_telnyx_has_heard_count_and_pictures_keep_their_links(at_telnyx: TelnyxLine) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    await is_opted_out(live, refused_with="STOP")
    link = "https://media.telnyx.example/1.png"
    await telnyx.text(
        PERSON, live.number, "STOP", autoresponse_type="STOP", media=[{"url": link, "content_type": "image/png"}]
    )
    assert {sent["to"] for sent in _sent(telnyx, "messages")} == {"+15550100083"}, (
        "Telnyx itself has confirmed the STOP"
    )
    assert await newest_pictures(live) == [link]


async def test_what_telnyx_did_and_did_not_say_is_done_once(at_telnyx: TelnyxLine) -> None:
    """A text message is known by its webhooks, and a number by a search among the account's."""
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.failures["POST", "messages"] = [BROKEN]
    sent = await live.caller.post("/v1/sms", {"to_number": PERSON, "from_number_id": live.number_id, "body": "Hello"})
    assert (await text_with(live, sent.json, "delivered"))["error_message"] is None
    assert len(_sent(telnyx, "messages")) == 1
    await purchase_is_repaired(live, telnyx, "number_orders", "+16045550143")
    assert telnyx.numbers["+16045550143"].connection_id == telnyx.connection_id


# --- webhooks ---


async def test_forged_webhooks_are_answered_403_and_change_nothing(
    at_telnyx: TelnyxLine, organizations: Organizations
) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    stranger, base = await organizations.make(), live.runtime.settings.base_url
    call = CallRecord("incoming", PERSON, live.number, telnyx.connection_id, "")
    body = webhook("call.initiated", call.payload(direction="incoming", state="parked"))
    path = f"/carriers/telnyx/{live.caller.organization_id}/events"
    genuine = signed_headers(telnyx.key, body)
    other_key = TelnyxServer().key
    forgeries: dict[str, tuple[bytes, dict[str, str]]] = {
        "unsigned": (body, {}),
        "another account's": (body, signed_headers(other_key, body)),
        "altered": (body.replace(b"incoming", b"outgoing"), genuine),
        "stale": (body, signed_headers(telnyx.key, body, at=now().timestamp() - 400)),
    }
    async with aiohttp.ClientSession() as http:
        for name, (sent, headers) in forgeries.items():
            async with http.post(base + path, data=sent, headers=headers) as answer:
                assert (answer.status, (await answer.json())["code"]) == (403, "forbidden"), name
        elsewhere = path.replace(str(live.caller.organization_id), str(stranger.organization_id))
        async with http.post(base + elsewhere, data=body, headers=genuine) as answer:
            assert answer.status in (403, 502), "that organization has no Telnyx"
        assert (await live.caller.get("/v1/calls")).json["total"] == 0
        telnyx.over.add(call.id)
        async with http.post(
            base + path, data=body, headers={**genuine, "Host": "internal", "X-Forwarded-Proto": "https"}
        ) as answer:
            assert answer.status == 200, "behind a proxy"
        assert (await live.caller.get("/v1/calls")).json["total"] == 1
