"""Calls over the loopback carrier, against a small platform with callbacks and a media socket."""

import asyncio
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CallProgress,
    ConnectMedia,
    DigitPressed,
    ForwardCall,
    Instruction,
    InvalidCallback,
    MachineDetected,
    MarkReached,
    MediaStarted,
    MediaStopped,
    OutboundTextMessage,
    ProviderError,
    RejectCall,
    SpokenLine,
    TextMessageReceived,
    TextMessageStatus,
)
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony

from tests.fixtures.loopback_platform import OURS, SETTINGS, VOICE, Platform
from tests.fixtures.virtual_clock import CLOCK


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[Platform]:
    carrier = LoopbackTelephony(SETTINGS)
    await carrier.open()
    platform = Platform(carrier)
    application = web.Application()
    application.router.add_post("/events/{path}", platform.callback)
    application.router.add_get("/media", platform.serve_media)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    platform.address = f"127.0.0.1:{runner.addresses[0][1]}"
    yield platform
    await carrier.close()
    await runner.cleanup()


async def test_a_callee_answers_speaks_and_hangs_up(platform: Platform) -> None:
    platform.greeting = b""
    await platform.carrier.place_call(platform.build_order("+15550100001"))
    await platform.wait_until(lambda: bool(platform.media))
    await platform.wait_until(lambda: bool(platform.events))
    a_word_every_second = (VOICE * 2 + b"\xff" * 8000) * 15
    await platform.send(platform.carrier.create_media_codec("").encode(a_word_every_second))
    end = await platform.wait_for_end()
    assert [type(event) for event in platform.events] == [CalleeRinging, CallAnswered, CallEnded]
    assert end.outcome == "completed"
    await platform.wait_until(lambda: platform.media[-1] == MediaStopped())


@pytest.mark.parametrize(
    ("number", "outcome"), [("20", "busy"), ("21", "no-answer"), ("22", "failed"), ("23", "failed")]
)
async def test_unanswered_calls_state_a_reason(platform: Platform, number: str, outcome: str) -> None:
    assert await platform.call(f"+155501000{number}", ring_seconds=1) == [CalleeRinging, CallEnded]
    assert (await platform.wait_for_end()).outcome == outcome


async def test_a_refused_destination_is_an_error_at_once(platform: Platform) -> None:
    with pytest.raises(ProviderError):
        await platform.carrier.place_call(platform.build_order("+15550100024"))
    assert platform.events == []


async def test_voicemail_is_reported_at_the_answer_and_at_the_beep(platform: Platform) -> None:
    call_id = await platform.carrier.place_call(platform.build_order("+15550100030"))
    await platform.wait_until(lambda: any(isinstance(event, MachineDetected) for event in platform.events))
    await platform.carrier.hang_up(call_id)
    await platform.wait_for_end()
    assert platform.events[1:3] == [
        CallAnswered(call_id, "machine"),
        MachineDetected(call_id, beep=True),
    ]


async def test_a_callee_who_hangs_up_ends_the_call(platform: Platform) -> None:
    platform.greeting = VOICE * 200
    assert await platform.call("+15550100040") == [CalleeRinging, CallAnswered, CallEnded]


async def test_a_callee_interrupts_the_agent(platform: Platform) -> None:
    platform.greeting = VOICE * 500
    await platform.carrier.place_call(platform.build_order("+15550100060"))
    await platform.wait_until(lambda: len(set(platform.audio)) > 1)
    assert MarkReached("greeted") not in platform.media


async def test_a_callee_hangs_up_in_mid_sentence(platform: Platform) -> None:
    assert await platform.call("+15550100041") == [CalleeRinging, CallAnswered, CallEnded]
    assert platform.audio.strip(b"\xff")


async def test_pressed_keys_arrive_over_the_media_socket(platform: Platform) -> None:
    await platform.carrier.place_call(platform.build_order("+15550100050"))
    await platform.wait_until(lambda: DigitPressed("#") in platform.media)
    assert [event.digit for event in platform.media if isinstance(event, DigitPressed)] == list("123#")


async def test_nobody_answers_before_the_platform_knows_that_the_phone_rings(platform: Platform) -> None:
    platform.statuses = [503, 503]
    call_id = await platform.carrier.place_call(platform.build_order("+15550100001"))
    await platform.wait_until(lambda: bool(platform.media))
    assert CalleeRinging(call_id) in platform.events


async def test_hanging_up_during_ringing_cancels_the_call(platform: Platform) -> None:
    call_id = await platform.carrier.place_call(platform.build_order("+15550100021"))
    assert await platform.carrier.find_call("our-call") == call_id
    await platform.carrier.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "canceled"


async def test_another_process_controls_a_call_by_its_id(platform: Platform) -> None:
    call_id = await platform.carrier.place_call(platform.build_order("+15550100070"))
    other_process, stranger = (
        LoopbackTelephony(SETTINGS),
        LoopbackTelephony(LoopbackSettings(signing_secret=SecretStr("somebody else's secret"))),
    )
    await other_process.open()
    await stranger.open()
    await platform.wait_until(lambda: bool(platform.media))
    with pytest.raises(ProviderError):
        await stranger.send_digits(call_id, "1")
    with pytest.raises(ProviderError, match="does not answer"):
        await other_process.transfer(call_id, to_number="+15550100020", caller_id=OURS, callbacks=platform.callbacks)
    await other_process.send_digits(call_id, "1w2")
    await other_process.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "completed"
    await other_process.close()
    await stranger.close()


async def test_a_transferred_call_leaves_the_media_socket_and_continues(platform: Platform) -> None:
    call_id = await platform.carrier.place_call(platform.build_order("+15550100070"))
    await platform.wait_until(lambda: bool(platform.media))
    await platform.carrier.transfer(call_id, to_number="+15550100070", caller_id=OURS, callbacks=platform.callbacks)
    await platform.wait_until(lambda: MediaStopped() in platform.media)
    assert not any(isinstance(event, CallEnded) for event in platform.events)
    await platform.carrier.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "completed"


async def test_a_mark_returns_after_the_audio_before_it_was_played(platform: Platform) -> None:
    platform.greeting = VOICE * 25
    await platform.carrier.place_call(platform.build_order("+15550100070"))
    await platform.wait_until(lambda: any(isinstance(event, MediaStarted) for event in platform.media))
    started = asyncio.get_running_loop().time()
    await platform.wait_until(lambda: MarkReached("greeted") in platform.media)
    assert 0.4 < asyncio.get_running_loop().time() - started < 1.0


async def test_clear_stops_audio_within_a_frame_and_returns_marks(platform: Platform) -> None:
    platform.greeting = VOICE * 500
    ringing = asyncio.create_task(platform.simulate_call("Stop."))
    await platform.wait_until(lambda: any(isinstance(event, MediaStarted) for event in platform.media))
    await platform.wait_until(lambda: len(platform.audio) >= 160 * 20)
    await platform.send(platform.carrier.create_media_codec("").clear())
    await platform.wait_until(lambda: MarkReached("greeted") in platform.media)
    frames = len(platform.audio) // 160
    assert platform.socket is not None
    await platform.socket.close()
    call = await ringing
    assert call.hung_up_by == "agent"
    assert abs(round(call.heard_seconds / 0.02) - frames) <= 3


async def test_a_simulated_call_measures_the_answer(platform: Platform) -> None:
    stages: list[str] = []
    said = asyncio.Event()

    def watch(step: CallProgress) -> None:
        stages.append(step.stage)
        if step.line == 1:
            said.set()

    ringing = asyncio.create_task(platform.simulate_call("Hello there.", progress=watch))
    await said.wait()
    await platform.send(platform.carrier.create_media_codec("").encode(VOICE * 10))
    call = await ringing
    assert call.answered
    assert call.hung_up_by == "person"
    assert call.first_reply_ms is not None
    assert 0 < call.first_reply_ms < 500
    assert call.heard_seconds == pytest.approx(0.3)
    assert len(call.said) == len(call.heard)
    assert stages == ["ringing", "connected", "agent_speaking", "said", "agent_speaking", "ended"]


@pytest.mark.parametrize("instruction", [RejectCall("busy"), ForwardCall("+15550100020", OURS)])
async def test_an_unanswered_simulated_call_states_a_reason(platform: Platform, instruction: Instruction) -> None:
    platform.instruction = instruction
    call = await platform.simulate_call("Hello?")
    assert not call.answered
    assert "busy" in (call.refused_reason or "")


async def test_a_forwarded_call_reaches_the_other_person(platform: Platform) -> None:
    platform.instruction = ForwardCall("+15550100001", OURS)
    call = await platform.simulate_call("Hello?")
    assert call.answered
    assert call.heard_seconds > 0
    assert platform.media == []


async def test_a_failing_platform_is_retried(platform: Platform) -> None:
    platform.statuses = [503, 500]
    await platform.carrier.simulate_text_message(
        from_number="+15550100001", to_number=OURS, body="Hi", callbacks=platform.callbacks
    )
    assert [type(event) for event in platform.events] == [TextMessageReceived]


async def test_a_refusing_platform_ends_the_call(platform: Platform) -> None:
    platform.statuses = [403]
    assert (await platform.simulate_call("Hello?")).refused_reason == "the platform answered 403"


async def test_an_unreachable_media_address_fails_the_call(platform: Platform) -> None:
    platform.instruction = ConnectMedia("ws://127.0.0.1:9/nobody")
    call = await platform.simulate_call("Hello?")
    assert "media socket" in (call.refused_reason or "")
    assert (await platform.wait_for_end()).outcome == "failed"


async def test_a_refused_media_address_is_not_told(platform: Platform) -> None:
    platform.instruction = ConnectMedia(f"{platform.media_url}/token-of-the-call")
    call = await platform.simulate_call("Hello?")
    assert call.refused_reason == "the media socket cannot be opened: status 404"


async def test_a_silent_platform_is_named_as_one(platform: Platform) -> None:
    platform.silent = True
    assert (await platform.simulate_call("Hello?")).refused_reason == "the platform cannot be reached: TimeoutError"


async def test_an_expired_or_misdirected_signature_is_refused(platform: Platform) -> None:
    await platform.carrier.simulate_text_message(
        from_number="+15550100001", to_number=OURS, body="Hi", callbacks=platform.callbacks
    )
    request, receive = platform.requests[0], platform.carrier.receive
    with pytest.raises(InvalidCallback, match="match"):
        await receive(CallbackRequest(request.method, request.url + "?x", request.path, request.headers, request.body))
    CLOCK.advance(24 * 3600.0)
    with pytest.raises(InvalidCallback, match="old"):
        await receive(request)


async def test_messages_are_delivered_and_some_recipients_reply(platform: Platform) -> None:
    text_id = await platform.carrier.send_text_message(
        OutboundTextMessage("ours", OURS, "+15550100081", "Shall I?", platform.callbacks)
    )
    await platform.wait_until(lambda: len(platform.events) == 3)
    assert platform.events[:2] == [
        TextMessageStatus(text_id, "sent"),
        TextMessageStatus(text_id, "delivered"),
    ]
    assert isinstance(platform.events[2], TextMessageReceived)


async def test_an_undelivered_message_states_a_reason(platform: Platform) -> None:
    await platform.carrier.send_text_message(
        OutboundTextMessage("ours", OURS, "+15550100080", "Shall I?", platform.callbacks)
    )
    await platform.wait_until(lambda: len(platform.events) == 2)
    last = platform.events[-1]
    assert isinstance(last, TextMessageStatus)
    assert (last.status, last.error_code) == ("undelivered", "30003")


async def test_a_wav_line_is_played_at_any_sample_rate(platform: Platform, tmp_path: Path) -> None:
    path = tmp_path / "line.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 44_100, 0, "NONE", "not compressed"))
        file.writeframes(b"\x00\x20\x00\x20" * 22_050 + b"\x00\xe0\x00\xe0" * 22_050)
    platform.greeting = b""
    ringing = asyncio.create_task(
        platform.carrier.simulate_call(
            from_number="+15550100001", to_number=OURS, lines=[SpokenLine(wav=path)], callbacks=platform.callbacks
        )
    )
    await platform.wait_until(lambda: len(platform.audio.lstrip(b"\xff")) >= 8800)
    assert platform.socket is not None
    await platform.socket.close()
    call = await ringing
    assert 7900 <= len(call.said.strip(b"\xff")) <= 8100


async def test_a_broken_wav_file_is_named(platform: Platform, tmp_path: Path) -> None:
    path = tmp_path / "line.wav"
    path.write_bytes(b"RIFF")
    with pytest.raises(ProviderError, match=r"line\.wav"):
        await platform.carrier.simulate_call(
            from_number="+15550100001", to_number=OURS, lines=[SpokenLine(wav=path)], callbacks=platform.callbacks
        )


async def test_closing_ends_live_calls_and_notifies_the_platform(platform: Platform) -> None:
    await platform.carrier.place_call(platform.build_order("+15550100070"))
    await platform.wait_until(lambda: bool(platform.media))
    await platform.carrier.close()
    assert isinstance(platform.events[-1], CallEnded)
