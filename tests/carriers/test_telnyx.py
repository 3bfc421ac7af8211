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
from switchboard.foundation.database import now
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.carriers.checks import check_opt_out, check_purchase_repair, fetch_carrier_recording, fetch_newest_files
from tests.carriers.lines import (
    PERSON,
    Line,
    list_call_events,
    open_telnyx_line,
    wait_for_message_status,
    wait_for_only_call,
)
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord, encode_webhook, sign_headers
from tests.carriers.vendor import BROKEN, DONE
from tests.fixtures.app import LivePlatform, Organizations

TelnyxLine = tuple[Line, TelnyxServer]
NOBODY, QUICK = "+15550100020", "+15550100040"


@pytest_asyncio.fixture
async def at_telnyx(runtime: Runtime, organizations: Organizations) -> AsyncIterator[TelnyxLine]:
    async with open_telnyx_line(runtime, organizations, record_calls=True) as line_and_server:
        yield line_and_server


def _call_url(live: LivePlatform, call: dict[str, Any]) -> str:
    return f"{live.runtime.settings.base_url}/carriers/telnyx/{live.caller.organization_id}/calls/{call['id']}"


def _list_request_bodies(telnyx: TelnyxServer, last: str) -> list[dict[str, object]]:
    return [body for method, path, body in telnyx.requests if method == "POST" and path.rpartition("/")[2] == last]


# --- calls ---


async def test_a_call_with_a_lost_response_is_placed_once(at_telnyx: TelnyxLine) -> None:
    """Telnyx placed the call, and the connection broke or the response was a 500; or placing it failed.

    Webhooks report the call, and another carrier may be tried.
    """
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.failures["POST", "calls"] = [BROKEN]
    assert (await live.wait_for_end((await live.place_call("+15550100020"))["id"]))["status"] == "busy"
    assert len(_list_request_bodies(telnyx, "calls")) == 1
    telnyx.failures["POST", "calls"] = [DONE, 500]
    calls = [await live.place_call("+15550100040") for _ in range(2)]
    finished: list[Any] = [await live.wait_for_end(call["id"]) for call in calls]
    assert [call["status"] for call in finished] == ["completed"] * 2
    async with asyncio.timeout(60):
        await telnyx.wait_until_idle()
    assert telnyx.talked == sum(call["served_by"]["telephony"] == "telnyx" for call in finished)
    assert "loopback" in [call["served_by"]["telephony"] for call in finished]


async def test_webhooks_may_be_repeated_late_and_reordered(at_telnyx: TelnyxLine) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.repeats = True
    placed_calls = [await live.place_call(f"+155501000{digits}") for digits in ("20", "22", "40")]
    statuses = [(await live.wait_for_end(call["id"]))["status"] for call in placed_calls]
    assert statuses == ["busy", "failed", "completed"]
    states = {str(body["webhook_url"]): str(body["client_state"]) for body in _list_request_bodies(telnyx, "calls")}
    for call, status in zip(placed_calls, statuses, strict=True):
        async with live.runtime.database.write(live.caller.organization_id) as session:
            call_id = (await get_row(session, Call, UUID(str(call["id"])))).carrier_call_id or ""
        url = _call_url(live, call)
        late = telnyx.post(
            CallRecord("outgoing", live.number, PERSON, telnyx.connection_id, url, client_state=states[url], id=call_id)
        )
        await late.send_event("call.hangup", hangup_cause="normal_clearing", sip_hangup_cause="200")
        await late.send_event("call.answered", state="answered")
        await late.send_event("call.machine.detection.ended", result="human")
        await late.send_event("call.initiated", direction="outgoing", state="bridging")
        assert (await live.wait_for_end(call["id"]))["status"] == status
        names = await list_call_events(live, call["id"])
        assert len(names) == len(set(names)), names


@pytest.mark.local_receivers
async def test_browser_and_telephone_calls_are_connected_and_recorded(at_telnyx: TelnyxLine) -> None:
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
        line.simulate_call("Thank you"),
        dial(live.number),
        dial(QUICK, live.number),
        dial(QUICK, "+15550100009"),
        dial(QUICK),
        dial("sip:x", live.number),
        dial("sip:x", headers=to_agent),
    )
    assert answered == [True, True, False, False, False, True]
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    finished_calls: list[Any] = [await live.wait_for_end(item["id"]) for item in items]
    assert [call["agent_id"] for call in finished_calls].count(live.agent_id) == 3
    finished = {call["from_number"] + call["to_number"]: call for call in finished_calls}
    assert {name: (call["direction"], call["status"]) for name, call in finished.items()} == {
        live.number + live.number: ("inbound", "completed"), live.number + QUICK: ("outbound", "completed"),
        PERSON + live.number: ("inbound", "completed"),
    }  # fmt: skip
    assert "5#" in [body["digits"] for body in _list_request_bodies(telnyx, "send_dtmf")]
    await fetch_carrier_recording(live, UUID(finished[PERSON + live.number]["id"]))
    token = await live.caller.post("/v1/browser-call/token")
    assert (token.status, token.json["provider"]) == (200, "telnyx"), token.body


async def test_a_caller_is_hung_up_if_forwarding_fails(at_telnyx: TelnyxLine) -> None:
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
    assert not (await line.simulate_call("Hello?")).answered
    assert len(_list_request_bodies(telnyx, "hangup")) == 1
    assert (await wait_for_only_call(live))["transferred_to"] == NOBODY


async def test_a_media_socket_requires_the_streams_state(at_telnyx: TelnyxLine) -> None:
    (line, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.stream_start = {"client_state": "e30="}
    rejected_call = await line.simulate_call("Hello")
    call = await wait_for_only_call(live)
    assert (call["status"], rejected_call.heard_seconds) == ("failed", 0.0)
    assert (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"] == []


# --- texts and numbers ---


@pytest.mark.local_receivers
async def test_opt_outs_known_to_telnyx_count_and_pictures_are_fetched(at_telnyx: TelnyxLine) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    await check_opt_out(live, refusal_code="STOP")
    telnyx.recordings["a-file"] = b"a picture"
    link = telnyx.storage_url("a-file")
    await telnyx.text(
        PERSON, live.number, "STOP", autoresponse_type="STOP", media=[{"url": link, "content_type": "image/png"}]
    )
    assert {body["to"] for body in _list_request_bodies(telnyx, "messages")} == {"+15550100083"}, (
        "Telnyx itself has confirmed the STOP"
    )
    assert await fetch_newest_files(live) == [b"a picture"]


async def test_requests_with_lost_responses_have_one_effect(at_telnyx: TelnyxLine) -> None:
    """A text message is known by its webhooks, and a number by a search among the account's."""
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    telnyx.failures["POST", "messages"] = [BROKEN]
    body = await live.caller.post("/v1/sms", {"to_number": PERSON, "from_number_id": live.number_id, "body": "Hello"})
    assert (await wait_for_message_status(live, body.json, "delivered"))["error_message"] is None
    assert len(_list_request_bodies(telnyx, "messages")) == 1
    await check_purchase_repair(live, telnyx, "number_orders", "+16045550143")
    assert telnyx.numbers["+16045550143"].connection_id == telnyx.connection_id


# --- webhooks ---


async def test_forged_webhooks_are_refused_and_change_nothing(
    at_telnyx: TelnyxLine, organizations: Organizations
) -> None:
    (_, telnyx), live = at_telnyx, at_telnyx[0].live
    stranger, base = await organizations.create(), live.runtime.settings.base_url
    call = CallRecord("incoming", PERSON, live.number, telnyx.connection_id, "")
    body = encode_webhook("call.initiated", call.payload(direction="incoming", state="parked"))
    path = f"/carriers/telnyx/{live.caller.organization_id}/events"
    genuine = sign_headers(telnyx.key, body)
    other_key = TelnyxServer().key
    forgeries: dict[str, tuple[bytes, dict[str, str]]] = {
        "unsigned": (body, {}),
        "another account's": (body, sign_headers(other_key, body)),
        "altered": (body.replace(b"incoming", b"outgoing"), genuine),
        "stale": (body, sign_headers(telnyx.key, body, at=now().timestamp() - 400)),
    }
    async with aiohttp.ClientSession() as http:
        for name, (sent_body, headers) in forgeries.items():
            async with http.post(base + path, data=sent_body, headers=headers) as answer:
                assert (answer.status, (await answer.json())["code"]) == (403, "forbidden"), name
        other_path = path.replace(str(live.caller.organization_id), str(stranger.organization_id))
        async with http.post(base + other_path, data=body, headers=genuine) as answer:
            assert answer.status in (403, 502), "that organization has no Telnyx"
        assert (await live.caller.get("/v1/calls")).json["total"] == 0
        telnyx.over.add(call.id)
        async with http.post(
            base + path, data=body, headers={**genuine, "Host": "internal", "X-Forwarded-Proto": "https"}
        ) as answer:
            assert answer.status == 200, "behind a proxy"
        assert (await live.caller.get("/v1/calls")).json["total"] == 1
