"""Traces of calls: what is kept, for how long, what is masked, and how it is drawn."""

import pytest
from switchboard_telephony_sip.cli.call_trace import draw_ladder
from switchboard_telephony_sip.commands import TraceEntry
from switchboard_telephony_sip.gateway import call_traces
from switchboard_telephony_sip.gateway.call_traces import (
    FIRST_MESSAGES,
    LAST_MESSAGES,
    MESSAGE_BYTES,
    CallTraces,
    mask_message,
)
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.notices import NoticeQueue, PlatformLink
from switchboard_telephony_sip.signaling.endpoint import TracedMessage
from switchboard_telephony_sip.signaling.peers import Peer

from tests.fixtures.virtual_clock import CLOCK

TRUNK = Peer("udp", "203.0.113.9", 5060)


def create_call(account_key: str = "account") -> GatewayCall:
    link = PlatformLink(None, "secret")  # type: ignore[arg-type]  # nothing is sent
    return GatewayCall("127.0.0.1:8070", account_key, NoticeQueue(link, "http://127.0.0.1:9"))


def message(sip_id: str, start: str = "INFO sip:a@b SIP/2.0", size: int = 0, *, incoming: bool = True) -> TracedMessage:
    data = f"{start}\r\nCall-ID: {sip_id}\r\n\r\n".encode() + b"x" * size
    return TracedMessage("in" if incoming else "out", "203.0.113.5:5060", TRUNK, sip_id, data)


def count(traces: CallTraces, call: GatewayCall) -> int | None:
    found = traces.find(call.account_key, call.call_id)
    return None if found is None else len(found.messages)


def test_a_call_that_came_in_has_its_first_messages_too() -> None:
    call = create_call()
    traces = CallTraces(live={call.call_id})
    traces.record(message("sip-1", "INVITE sip:a@b SIP/2.0"))
    traces.record(message("sip-1", "SIP/2.0 100 Trying", incoming=False))
    traces.link(call, "sip-1")
    traces.record(message("sip-1", "SIP/2.0 200 OK", incoming=False))
    traces.record(message("sip-2", "OPTIONS sip:a@b SIP/2.0"))
    found = traces.find("account", call.call_id)
    assert found is not None
    assert [entry.summary for entry in found.messages] == ["INVITE", "100 Trying", "200 OK"]
    assert traces.find("another account", call.call_id) is None


def test_the_middle_of_a_long_call_and_the_end_of_a_long_message_are_left_out() -> None:
    call = create_call()
    traces = CallTraces(live={call.call_id})
    traces.link(call, "sip-1")
    for ordinal in range(300):
        traces.record(message("sip-1", f"SIP/2.0 {100 + ordinal} X", size=10_000))
    found = traces.find("account", call.call_id)
    assert found is not None
    assert found.omitted == 300 - FIRST_MESSAGES - LAST_MESSAGES
    assert found.messages[FIRST_MESSAGES - 1].summary == "149 X"
    assert (found.messages[0].summary, found.messages[-1].summary) == ("100 X", "399 X")
    assert {len(entry.text) for entry in found.messages} == {MESSAGE_BYTES}


def test_ended_calls_are_kept_for_half_an_hour_and_live_ones_for_ever() -> None:
    live, ended = create_call(), create_call()
    traces = CallTraces(live={live.call_id})
    for call in (live, ended):
        traces.link(call, call.call_id)
        traces.record(message(call.call_id))
    CLOCK.advance(call_traces.KEEP_SECONDS - 1)
    assert (count(traces, live), count(traces, ended)) == (1, 1)
    CLOCK.advance(2)
    assert (count(traces, live), count(traces, ended)) == (1, None)
    traces.record(message(live.call_id))
    assert count(traces, live) == 2


def test_ended_calls_take_bounded_memory_and_the_oldest_go_first() -> None:
    calls = [create_call() for _ in range(20)]
    traces = CallTraces(live=(), keep_bytes=10 * MESSAGE_BYTES)
    for call in calls:
        traces.link(call, call.call_id)
        traces.record(message(call.call_id, size=MESSAGE_BYTES))
    assert [count(traces, call) for call in calls] == [None] * 10 + [1] * 10


def test_invites_of_scanners_take_bounded_memory() -> None:
    traces, call = CallTraces(live=()), create_call()
    for ordinal in range(call_traces.MAX_UNDECIDED + 1):
        traces.record(message(f"scan-{ordinal}", "INVITE sip:a@b SIP/2.0"))
    traces.link(call, "scan-0")
    assert count(traces, call) == 0


@pytest.mark.parametrize(
    ("plain", "masked"),
    [
        (
            'Authorization: Digest username="office", nonce="n", response="0123abcd", qop=auth',
            'Authorization: Digest username="office", nonce="n", response="***", qop=auth',
        ),
        ("Proxy-Authorization: Basic b2ZmaWNlOnB3", "Proxy-Authorization: Basic ***"),
        ("Contact: <sip:office:hunter2@10.0.0.1>", "Contact: <sip:office:***@10.0.0.1>"),
        ("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0|2^20|1:4",
         "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:***|2^20|1:4"),
        ("k=clear:secret", "k=clear:***"),
        ("a=ice-pwd:secret", "a=ice-pwd:***"),
        ("INVITE sip:+12125550100@10.0.0.1:5060 SIP/2.0", "INVITE sip:+1212***0100@10.0.0.1:5060 SIP/2.0"),
        ('From: "2125550100" <sip:2125550100@pbx>;tag=1234567',
         'From: "212***100" <sip:212***100@pbx>;tag=1234567'),
        ("Call-ID: 1234567890@10.0.0.1", "Call-ID: 1234567890@10.0.0.1"),
        ("Via: SIP/2.0/UDP 192.168.100.100:5060;branch=z9hG4bK1234567890",
         "Via: SIP/2.0/UDP 192.168.100.100:5060;branch=z9hG4bK1234567890"),
        ("Content-Type: application/dtmf-relay\r\n\r\nSignal=5\r\nDuration=160",
         "Content-Type: application/dtmf-relay\r\n\r\nSignal=***\r\nDuration=160"),
        ("Content-Type: application/dtmf\r\nContent-Length: 1\r\n\r\n5",
         "Content-Type: application/dtmf\r\nContent-Length: 1\r\n\r\n***"),
    ],
)  # fmt: skip
def test_secrets_keys_and_numbers_are_masked(plain: str, masked: str) -> None:
    assert mask_message(f"{plain}\r\n").rstrip().replace("\r", "") == masked.replace("\r", "")


def test_a_call_over_two_trunks_is_drawn_in_three_columns() -> None:
    def entry(at: float, direction: str, remote: str, summary: str) -> TraceEntry:
        return TraceEntry(at, direction, "10.0.0.5:5060", remote, "udp", summary, "")  # type: ignore[arg-type]

    drawn = draw_ladder(
        [
            entry(0.0, "out", "10.0.0.1:5060", "INVITE"),
            entry(0.25, "in", "10.0.0.1:5060", "503 Service Unavailable"),
            entry(0.5, "out", "10.0.0.2:5060", "INVITE"),
            entry(1.0, "in", "10.0.0.2:5060", "\x1b[31m200 OK"),
        ]
    )
    assert drawn == [
        "Time (UTC)    gateway                           trunk                             trunk",
        "              10.0.0.5:5060                     udp 10.0.0.1:5060                 udp 10.0.0.2:5060",
        "00:00:00.000  |-- INVITE ---------------------->|                                 |",
        "00:00:00.250  |<-- 503 Service Unavailable -----|                                 |",
        "00:00:00.500  |-- INVITE -------------------------------------------------------->|",
        "00:00:01.000  |<-- ?[31m200 OK ---------------------------------------------------|",
    ]
