"""Behavior specific to Twilio: failover, lost responses, repeated and late callbacks, opt-outs, recordings, stream
tokens, digits as tones.
"""

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
from switchboard.engine.conversation.media.tones import COLUMNS, ROWS
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import ACCEPT_KEY, SimulatedCall, TelephonyProvider
from switchboard.resources.calls import callbacks
from switchboard.resources.calls.dialing import build_media_url
from switchboard.resources.calls.jobs import end_abandoned_calls
from switchboard.resources.calls.media.call_runner import ProviderCarrierLeg
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.carriers.checks import check_opt_out, check_purchase_repair, fetch_carrier_recording, fetch_newest_files
from tests.carriers.lines import (
    PERSON,
    Line,
    list_call_events,
    open_twilio_line,
    wait_for_message_status,
    wait_for_only_call,
    wait_until_answered,
)
from tests.carriers.twilio.server import UNREACHABLE, TwilioServer, new_sid
from tests.carriers.twilio.wire import CallRecord, compute_signature
from tests.carriers.vendor import BROKEN, DONE
from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import number_at
from tests.fixtures.leases import add_dead_process, look_for

TwilioLine = tuple[Line, TwilioServer]
MACHINE_SECONDS = 20
"""Least time after which the simulated machine hangs up."""


@pytest_asyncio.fixture
async def at_twilio(runtime: Runtime, organizations: Organizations) -> AsyncIterator[TwilioLine]:
    async with open_twilio_line(runtime, organizations, record_calls=True) as line_and_server:
        yield line_and_server


def _status_url(live: LivePlatform, call: dict[str, Any]) -> str:
    return f"{live.runtime.settings.base_url}/carriers/twilio/{live.caller.organization_id}/calls/{call['id']}/status"


# --- calls ---


async def test_a_call_fails_over_to_another_carrier(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    twilio.failures["POST", "Calls"] = [500]
    call: Any = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    assert (call["status"], call["ended_reason"], call["served_by"]["telephony"]) == (
        "completed",
        "caller_hung_up",
        "loopback",
    )
    assert sum(path.endswith("/Calls.json") for _, path, _ in twilio.requests) == 1
    stray = CallRecord(
        new_sid("CA"),
        "outbound-api",
        live.number,
        PERSON,
        status_callback=_status_url(live, call),
        status_events=("ringing",),
    )
    await twilio.post(stray).send_status("ringing")
    assert (twilio.requests[-1][1].rpartition("/")[2], twilio.requests[-1][2]) == (
        f"{stray.sid}.json",
        [("Status", "completed")],
    ), "hung up there"
    target = CallRecord(new_sid("CA"), "outbound-api", live.number, PERSON)
    url = f"{_status_url(live, call).rpartition('/')[0]}/introduced"
    await twilio.post(target).post_form(url, target.form(twilio.account_sid, "in-progress", Digits=ACCEPT_KEY))
    assert twilio.requests[-1][1].endswith(f"{target.sid}.json"), "who waits for a call that is over is hung up too"
    assert (await live.wait_for_end(call["id"]))["status"] == "completed"


async def test_a_transfer_target_is_hung_up_when_the_calls_server_dies(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    placed_call = await live.place_call("+15550100070")
    await wait_until_answered(live, placed_call["id"])
    target = CallRecord(new_sid("CA"), "outbound-api", live.number, PERSON)
    async with live.runtime.database.write(live.caller.organization_id) as session:
        call = await lock_row(session, Call, UUID(str(placed_call["id"])))
        call.holder = await add_dead_process(live.runtime.database)
    url = f"{_status_url(live, placed_call).rpartition('/')[0]}/introduced"
    await twilio.post(target).post_form(url, target.form(twilio.account_sid, "in-progress", Digits=ACCEPT_KEY))
    await look_for(live.runtime)
    await live.runtime.call(end_abandoned_calls)
    assert (await live.wait_for_end(placed_call["id"]))["status"] == "failed"

    async def find_hang_ups() -> list[str]:
        return [path for _, path, form in twilio.requests if form == [("Status", "completed")]]

    # The worker's own reconciler may have taken the call: then it hangs up after the call is seen to have ended.
    await eventually(find_hang_ups, lambda paths: any(target.sid in path for path in paths))


async def test_a_call_with_a_lost_response_is_placed_once(at_twilio: TwilioLine) -> None:
    """Twilio placed the call, and the connection broke or the response was a 500.

    Callbacks report the call, before or after another carrier was tried.
    """
    (_, twilio), live = at_twilio, at_twilio[0].live
    twilio.failures["POST", "Calls"] = [BROKEN]
    assert (await live.wait_for_end((await live.place_call("+15550100020"))["id"]))["status"] == "busy"
    assert sum(path.endswith("/Calls.json") for _, path, _ in twilio.requests) == 1
    twilio.failures["POST", "Calls"] = [DONE]
    call: Any = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    assert call["status"] == "completed"
    async with asyncio.timeout(60):
        await twilio.wait_until_idle()
    assert twilio.talked == (1 if call["served_by"]["telephony"] == "twilio" else 0)


async def test_a_call_identified_after_its_socket_opened_can_be_hung_up(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    call = await live.place_call("+15550100070")
    await wait_until_answered(live, call["id"])
    async with live.runtime.database.write(live.caller.organization_id) as session:
        stored_call = await get_row(session, Call, UUID(str(call["id"])))
        session.expunge(stored_call)
    stored_call.carrier_call_id = None
    async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider, "twilio") as provider:
        runtime = live.runtime
        leg = ProviderCarrierLeg(runtime.settings, runtime.database, runtime.registry, stored_call, provider)
        await leg.hang_up()
    assert (await live.wait_for_end(call["id"]))["status"] == "completed"
    assert [("Status", "completed")] in [
        form for _, path, form in twilio.requests if str(stored_call.carrier_call_id) in path
    ]


async def test_voicemail_is_recognized_though_the_message_about_it_is_lost(
    at_twilio: TwilioLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is unreachable, or late, when the carrier's judgment is passed on to the process that runs the call."""
    monkeypatch.setattr(callbacks, "send_live_message", AsyncMock(return_value=False))
    live = at_twilio[0].live
    finished = await live.wait_for_end((await live.place_call("+15550100030"))["id"])
    assert finished["ended_reason"] == "voicemail"
    assert number_at(finished, "duration_seconds") < MACHINE_SECONDS, "the agent talks until the machine hangs up"


async def test_callbacks_may_be_repeated_late_and_reordered(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    twilio.repeats = True
    placed_calls = [await live.place_call(f"+155501000{digits}") for digits in ("20", "22", "40")]
    statuses = [(await live.wait_for_end(call["id"]))["status"] for call in placed_calls]
    assert statuses == ["busy", "failed", "completed"]
    for call, status in zip(placed_calls, statuses, strict=True):
        async with live.runtime.database.write(live.caller.organization_id) as session:
            sid = (await get_row(session, Call, UUID(str(call["id"])))).carrier_call_id or ""
        events = ("completed", "answered", "ringing", "initiated")
        late = twilio.post(
            CallRecord(
                sid, "outbound-api", live.number, PERSON, status_callback=_status_url(live, call), status_events=events
            )
        )
        for state, event in (
            ("completed", "completed"),
            ("in-progress", "answered"),
            ("ringing", "ringing"),
            ("initiated", "initiated"),
        ):
            await late.send_status(state, event=event)
        assert (await live.wait_for_end(call["id"]))["status"] == status
        names = await list_call_events(live, call["id"])
        assert len(names) == len(set(names)), names


async def test_browser_calls_reach_agents_and_dial_out_with_own_numbers(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    application = f"{live.runtime.settings.base_url}/carriers/twilio/{live.caller.organization_id}/events/browser"

    async def dial(to_number: str, **given: str) -> SimulatedCall:
        return await twilio.call_from_browser("credential_1", to_number, application, ["Goodbye"], **given)

    to_number, to_agent, out, foreign, without, unknown = await asyncio.gather(
        dial(live.number),
        dial(f"agent:{live.agent_id}"),
        dial(PERSON, CallerId=live.number),
        dial(PERSON, CallerId="+15550100009"),
        dial(PERSON),
        dial("sip:x", CallerId=live.number),
    )
    assert (to_number.answered, to_agent.answered, out.answered) == (True, True, True)
    assert [refused.refused_reason for refused in (foreign, without, unknown)] == ["rejected"] * 3
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    finished = [await live.wait_for_end(item["id"]) for item in items]
    assert [call["agent_id"] for call in finished].count(live.agent_id) == 2
    assert {(call["direction"], call["from_number"], call["to_number"], call["status"]) for call in finished} == {
        ("inbound", live.number, live.number, "completed"), ("outbound", live.number, PERSON, "completed"),
    }  # fmt: skip
    assert (await live.caller.post("/v1/do-not-call", {"phone_number": PERSON})).status == 201
    assert not (await dial(PERSON, CallerId=live.number)).answered


# --- media and recordings ---


async def test_a_media_socket_requires_the_calls_address_and_the_streams_token(at_twilio: TwilioLine) -> None:
    (line, twilio), live = at_twilio, at_twilio[0].live
    base = live.runtime.settings.base_url
    rings = await live.place_call("+15550100021")
    async with aiohttp.ClientSession() as http:
        for path in ("", "x", "WyIwIiwiMCJd.AAAA"):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await http.ws_connect(f"{base}/media/{path}")
        url = build_media_url(
            live.runtime.settings,
            live.runtime.keyring,
            carrier="loopback",
            organization_id=live.caller.organization_id,
            call_id=UUID(str(rings["id"])),
        )
        async with http.ws_connect(url) as telnyx_socket:
            assert (await telnyx_socket.receive()).type is aiohttp.WSMsgType.CLOSE
    assert (await live.wait_for_end(rings["id"]))["status"] == "no-answer"
    twilio.stream_parameters = {"token": "0" * 64}
    inbound_call = await line.simulate_call("Hello")
    items: Any = (await live.caller.get("/v1/calls?direction=inbound")).json["items"]
    call = await live.wait_for_end(items[0]["id"])
    assert (call["status"], inbound_call.heard_seconds) == ("failed", 0.0)
    assert (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"] == []


async def test_a_call_without_audio_fails_with_a_reason(at_twilio: TwilioLine) -> None:
    (line, twilio), live = at_twilio, at_twilio[0].live
    twilio.media_is_unreachable = True
    placed_call = await live.place_call(PERSON)
    await line.simulate_call("Hello")
    calls_: Any = (await live.caller.get("/v1/calls")).json["items"]
    for call in [await live.wait_for_end(call["id"]) for call in calls_]:
        assert (call["status"], call["error_message"]) == (
            "failed",
            f"Twilio could not stream the call's audio: {UNREACHABLE}",
        ), call
    assert {call["id"] for call in calls_} >= {placed_call["id"]}
    assert len(calls_) == 2


@pytest.mark.local_receivers
async def test_twilios_recording_is_streamed_and_keys_are_tones(at_twilio: TwilioLine) -> None:
    line, live = at_twilio[0], at_twilio[0].live
    prompt = (
        'When the caller says "thank you" or "hello" or "goodbye": call press_digits(digits="5#")\n'
        'Otherwise: call press_digits(digits="5#")'
    )
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt})
    await line.simulate_call("Thank you")
    call_id = UUID((await wait_for_only_call(live))["id"])
    whole = await fetch_carrier_recording(live, call_id)
    with wave.open(io.BytesIO(whole)) as file:
        assert (file.getnchannels(), file.getframerate()) == (2, 8000)
        audio = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)[:, 1].astype(np.float64)
    windows = [np.abs(np.fft.rfft(audio[at : at + 800] * np.hanning(800))) for at in range(0, len(audio) - 800, 400)]
    tones = {
        tuple(sorted(int(peak) * 10 for peak in np.argsort(window)[-2:])) for window in windows if window.max() > 1e5
    }
    for low, high in ((ROWS[1], COLUMNS[1]), (ROWS[3], COLUMNS[2])):
        assert any(abs(pair[0] - low) <= 10 and abs(pair[1] - high) <= 10 for pair in tones), (low, high, tones)


# --- texts and numbers ---


@pytest.mark.local_receivers
async def test_opt_outs_known_to_twilio_count_and_pictures_are_fetched(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    await check_opt_out(live, refusal_code="unsubscribed")
    sid = new_sid("ME")
    twilio.recordings[sid] = b"a picture"
    address = f"https://api.twilio.com/2010-04-01/Accounts/{twilio.account_sid}/Messages/{new_sid('MM')}/Media/{sid}"
    links = {"NumMedia": "1", "MediaUrl0": address, "MediaContentType0": "image/jpeg"}
    await twilio.text(PERSON, live.number, "STOP", **links)
    texts = [dict(form)["To"] for _, path, form in twilio.requests if path.endswith("/Messages.json")]
    assert set(texts) == {"+15550100083"}, "Twilio itself has confirmed the STOP"
    assert await fetch_newest_files(live) == [b"a picture"]


async def test_a_message_with_a_lost_response_is_sent_once_and_found_by_its_callbacks(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    twilio.failures["POST", "Messages"] = [BROKEN]
    body = await live.caller.post("/v1/sms", {"to_number": PERSON, "from_number_id": live.number_id, "body": "Hello"})
    assert (await wait_for_message_status(live, body.json, "delivered"))["error_message"] is None
    assert sum(path.endswith("/Messages.json") for _, path, _ in twilio.requests) == 1


async def test_a_purchase_names_the_address_that_the_carrier_asks_for(at_twilio: TwilioLine) -> None:
    (line, twilio), address = at_twilio, new_sid("AD")
    order = {"phone_number": "+12125550198"}
    refused = await line.live.caller.post("/v1/phone-numbers", order)
    assert (refused.status, refused.json["code"]) == (502, "provider_error")
    assert "Phone Number Requires an Address" in str(refused.json["detail"])
    bought = await line.live.caller.post("/v1/phone-numbers", {**order, "carrier_address": address})
    assert (bought.status, bought.json["status"]) == (201, "active")
    assert dict(twilio.requests[-1][2])["AddressSid"] == address
    wrong = await line.live.caller.post("/v1/phone-numbers", {**order, "carrier_requirements": "one two"})
    assert wrong.status == 422


async def test_a_purchase_with_a_lost_response_is_repaired(at_twilio: TwilioLine) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    await check_purchase_repair(live, twilio, "IncomingPhoneNumbers", "+16045550142")
    assert twilio.numbers["+16045550142"].voice_url


# --- callbacks ---


async def test_forged_callbacks_are_refused_and_change_nothing(
    at_twilio: TwilioLine, organizations: Organizations
) -> None:
    (_, twilio), live = at_twilio, at_twilio[0].live
    stranger, base = await organizations.create(), live.runtime.settings.base_url
    form = {"CallSid": new_sid("CA"), "From": PERSON, "To": live.number, "CallStatus": "ringing"}
    path = f"/carriers/twilio/{live.caller.organization_id}/events/call"
    body = "&".join(f"{name}={value.replace('+', '%2B')}" for name, value in form.items())
    genuine = compute_signature(twilio.auth_token, base + path, form)
    forgeries = {
        "unsigned": (path, body, ""),
        "another token's": (path, body, compute_signature("another token", base + path, form)),
        "altered": (path, body.replace("ringing", "queued"), genuine),
        "for this machine's own name": (
            path,
            body,
            compute_signature(twilio.auth_token, f"http://localhost{path}", form),
        ),
        "replayed elsewhere": (path.replace("/call", "/text"), body, genuine),
    }
    async with aiohttp.ClientSession() as http:
        for name, (target_path, sent_body, signed) in forgeries.items():
            headers = {"X-Twilio-Signature": signed, "Content-Type": "application/x-www-form-urlencoded"}
            async with http.post(base + target_path, data=sent_body, headers=headers) as answer:
                assert (answer.status, (await answer.json())["code"]) == (403, "forbidden"), name
        other_path = path.replace(str(live.caller.organization_id), str(stranger.organization_id))
        async with http.post(base + other_path, data=body, headers={"X-Twilio-Signature": genuine}) as answer:
            assert answer.status in (403, 502), "that organization has no Twilio"
        assert (await live.caller.get("/v1/calls")).json["total"] == 0
        proxied = {
            "X-Twilio-Signature": genuine,
            "Content-Type": "application/x-www-form-urlencoded",
            "Host": "internal",
            "X-Forwarded-Proto": "https",
        }
        async with http.post(base + path, data=body, headers=proxied) as answer:
            assert (answer.status, answer.content_type) == (200, "text/xml"), "behind a proxy"
