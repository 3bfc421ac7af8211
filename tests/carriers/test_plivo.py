"""Behavior specific to Plivo: instructions that Plivo fetches, lost responses, repeated callbacks, opt-outs, stream
tokens, and keys that Plivo presses.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio
from switchboard.runtime import Runtime

from tests.carriers.checks import check_opt_out, check_purchase_repair, fetch_newest_files
from tests.carriers.lines import (
    PERSON,
    Line,
    list_call_events,
    open_plivo_line,
    wait_for_message_status,
    wait_for_only_call,
)
from tests.carriers.plivo.server import UNREACHABLE, PlivoServer
from tests.carriers.plivo.wire import sign_form
from tests.carriers.vendor import BROKEN, DONE
from tests.fixtures.app import Organizations

PlivoLine = tuple[Line, PlivoServer]


@pytest_asyncio.fixture
async def at_plivo(runtime: Runtime, organizations: Organizations) -> AsyncIterator[PlivoLine]:
    async with open_plivo_line(runtime, organizations) as line_and_server:
        yield line_and_server


def _count_requests(plivo: PlivoServer, collection: str) -> int:
    return sum(
        (method, path.strip("/").rpartition("/")[2]) == ("POST", collection) for method, path, _ in plivo.requests
    )


async def test_a_call_fails_over_to_another_carrier(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    plivo.failures["POST", "Call"] = [500]
    call: Any = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    assert (call["status"], call["served_by"]["telephony"]) == ("completed", "loopback")
    assert _count_requests(plivo, "Call") == 1


async def test_a_call_with_a_lost_response_is_placed_once(at_plivo: PlivoLine) -> None:
    """Plivo placed the call, and the connection broke or the response was a 500. Callbacks report the call."""
    (_, plivo), live = at_plivo, at_plivo[0].live
    plivo.failures["POST", "Call"] = [BROKEN]
    assert (await live.wait_for_end((await live.place_call("+15550100020"))["id"]))["status"] == "busy"
    assert _count_requests(plivo, "Call") == 1
    plivo.failures["POST", "Call"] = [DONE]
    call: Any = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    assert call["status"] == "completed"
    await plivo.wait_until_idle()
    assert plivo.talked == (1 if call["served_by"]["telephony"] == "plivo" else 0)


async def test_repeated_callbacks_change_nothing(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    plivo.repeats = True
    placed_calls = [await live.place_call(f"+155501000{digits}") for digits in ("20", "22", "40")]
    assert [(await live.wait_for_end(call["id"]))["status"] for call in placed_calls] == ["busy", "failed", "completed"]
    await plivo.wait_until_idle()
    for call in placed_calls:
        names = await list_call_events(live, call["id"])
        assert len(names) == len(set(names)), names


async def test_a_media_socket_requires_the_streams_token(at_plivo: PlivoLine) -> None:
    (line, plivo), live = at_plivo, at_plivo[0].live
    plivo.stream_headers = f"token={'0' * 64}"
    inbound_call = await line.simulate_call("Hello")
    assert ((await wait_for_only_call(live))["status"], inbound_call.heard_seconds) == ("failed", 0.0)


async def test_a_call_without_audio_fails_with_a_reason(at_plivo: PlivoLine) -> None:
    (line, plivo), live = at_plivo, at_plivo[0].live
    plivo.media_is_unreachable = True
    await live.place_call(PERSON)
    await line.simulate_call("Hello")
    calls: Any = (await live.caller.get("/v1/calls")).json["items"]
    assert len(calls) == 2
    for call in [await live.wait_for_end(call["id"]) for call in calls]:
        assert (call["status"], call["error_message"]) == (
            "failed",
            f"Plivo could not stream the call's audio: {UNREACHABLE}",
        ), call


async def test_plivo_presses_keys(at_plivo: PlivoLine) -> None:
    (line, plivo), live = at_plivo, at_plivo[0].live
    prompt = (
        'When the caller says "thank you" or "hello" or "goodbye": call press_digits(digits="5#")\n'
        'Otherwise: call press_digits(digits="5#")'
    )
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt})
    await line.simulate_call("Thank you")
    await wait_for_only_call(live)
    assert [given for _, path, given in plivo.requests if path.endswith("/DTMF/")][:1] == [
        {"digits": "5#", "leg": "aleg"}
    ]


@pytest.mark.local_receivers
async def test_opt_outs_known_to_plivo_count_and_pictures_are_fetched(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    await check_opt_out(live, refusal_code="200")
    media_id = str(uuid4())
    plivo.recordings[media_id] = b"a picture"
    address = f"https://media.plivo.com/Account/{plivo.auth_id}/Message/{uuid4()}/Media/{media_id}"
    await plivo.text(PERSON, live.number, "STOP", Type="mms", MediaCount="1", Media0=address)
    assert {given["dst"] for _, path, given in plivo.requests if path.endswith("/Message/")} == {"15550100083"}, (
        "Plivo itself has confirmed the STOP"
    )
    assert await fetch_newest_files(live) == [b"a picture"]


async def test_a_message_with_a_lost_response_is_sent_once_and_found_by_its_callbacks(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    plivo.failures["POST", "Message"] = [BROKEN]
    body = await live.caller.post("/v1/sms", {"to_number": PERSON, "from_number_id": live.number_id, "body": "Hello"})
    assert (await wait_for_message_status(live, body.json, "delivered"))["error_message"] is None
    assert _count_requests(plivo, "Message") == 1


async def test_a_purchase_with_a_lost_response_is_repaired(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    await check_purchase_repair(live, plivo, "16045550142", "+16045550142")
    assert plivo.numbers["+16045550142"].application


async def test_forged_callbacks_are_refused_and_change_nothing(at_plivo: PlivoLine) -> None:
    (_, plivo), live = at_plivo, at_plivo[0].live
    base, path = live.runtime.settings.base_url, f"/carriers/plivo/{live.caller.organization_id}/events/call"
    form = {"CallUUID": str(uuid4()), "From": PERSON[1:], "To": live.number[1:], "CallStatus": "ringing"}
    genuine, body = sign_form(plivo.auth_token, base + path, form), urlencode(form)
    forgeries = {
        "unsigned": (path, body, {}),
        "another token's": (path, body, sign_form("another token", base + path, form)),
        "altered": (path, body.replace("ringing", "queued"), genuine),
        "for this machine's own name": (path, body, sign_form(plivo.auth_token, f"http://localhost{path}", form)),
        "replayed elsewhere": (path.replace("/call", "/message"), body, genuine),
    }
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    async with aiohttp.ClientSession() as http:
        for name, (target_path, sent_body, headers) in forgeries.items():
            async with http.post(base + target_path, data=sent_body, headers={**headers, **kind}) as answer:
                assert (answer.status, (await answer.json())["code"]) == (403, "forbidden"), name
        assert (await live.caller.get("/v1/calls")).json["total"] == 0
        async with http.post(base + path, data=body, headers={**genuine, **kind, "Host": "internal"}) as answer:
            assert (answer.status, answer.content_type) == (200, "application/xml"), "behind a proxy"
