"""RFC 4475's torture messages, and mutations of them and of a call's messages."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from switchboard_telephony_sip.signaling.admission import ScannerLimits, TrunkQuota
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.outgoing import CallRedirected, CallRefused
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.reception import Admitted

from tests.fixtures.sip_peers import (
    ANSWER,
    RecordedCall,
    RecordedEvents,
    TestAgent,
    order_call,
    run_agent,
    run_virtually,
    send_info,
    wait_for,
)
from tests.fixtures.sip_torture import EXPECTED

STRANGE = Peer("udp", "127.0.0.1", 9)


def list_statuses(agent: TestAgent) -> Iterator[int]:
    """Yield the statuses of the responses that were sent, repeated ones too."""
    for line in agent.list_start_lines("out"):
        if line.startswith("SIP/2.0 "):
            yield int(line.split()[1])


@pytest.mark.parametrize("name", EXPECTED)
def test_each_torture_message_is_answered_as_rfc_4475_asks(name: str) -> None:
    text, expected = EXPECTED[name]
    offered: list[str | None] = []

    async def refuse(invite: IncomingInvite) -> None:
        offered.append(invite.sdp)
        invite.reject(486)

    async def talk() -> None:
        async with run_agent(RecordedEvents(refuse)) as agent:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(text.encode(), ("127.0.0.1", agent.peer.port))
            await asyncio.sleep(1)
            statuses = {status for status in list_statuses(agent) if status >= 200}
            if text.startswith("INVITE") and expected == 200:
                assert offered
                assert statuses == {486}
            else:
                assert statuses == (set() if expected is None else {expected})
                assert not offered
            await asyncio.sleep(64)
            assert agent.count_transactions() == 0

    run_virtually(talk())


def record_call() -> list[bytes]:
    """Return the requests and responses of a call with a hold, an INFO, a transfer, and refreshes of the session."""
    recorded: list[bytes] = []

    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            dialog = await caller.agent.invite(order_call(callee.peer, session_seconds=90))
            dialog.events = RecordedCall()
            await wait_for(callee.events.answered)
            await dialog.reinvite(ANSWER)
            await send_info(dialog, "application/dtmf-relay", "Signal=1")
            assert [status async for status in dialog.refer("sip:x@y.example")] == [100, 200]
            await asyncio.sleep(50)
            await dialog.bye()
            recorded.extend(message.data for message in callee.messages)

    run_virtually(talk())
    return recorded


SEEDS = [*(text.encode() for text, _ in EXPECTED.values()), *record_call()]
PIECES = st.sampled_from(
    [b"\r\n", b"\n", b"\r", b"\x00", b";", b",", b":", b'"', b"<", b">", b" ", b"=", b"\xff", b"%00", b"[", b"]", b"@"]
) | st.binary(max_size=6)
Edits = list[tuple[float, int, bytes]]
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), PIECES), min_size=1, max_size=6)
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "150"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)


class ErrorLog(logging.Handler):
    """The texts of errors that were logged."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def expect_no_errors() -> Iterator[None]:
    """Fail if a task of the user agent fails, which only its log says."""
    handler = ErrorLog(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert handler.texts == []


def mutate(seed: bytes, edits: Edits) -> bytes:
    for place, length, piece in edits:
        start = int(place * len(seed))
        seed = seed[:start] + piece + seed[start + length :]
    return seed


@FUZZ
@given(st.sampled_from(SEEDS), EDITS)
def test_mutated_messages_crash_nothing(seed: bytes, edits: Edits) -> None:
    async def refuse(invite: IncomingInvite) -> None:
        invite.reject(486)

    async def talk() -> None:
        async with run_agent(RecordedEvents(refuse)) as agent:
            agent.agent.endpoint.receive_data(mutate(seed, edits), STRANGE)
            await asyncio.sleep(100)
            assert all(100 <= status < 700 for status in list_statuses(agent))
            assert agent.count_transactions() == 0

    with expect_no_errors():
        run_virtually(talk())


class StrangePeer(asyncio.DatagramProtocol):
    """Peer that answers each request with mutated responses."""

    def __init__(self, answers: list[tuple[str, Edits]]) -> None:
        self._answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if data.startswith(b"INVITE") and self._answers:
            head = data.partition(b"\r\n\r\n")[0].split(b"\r\n", 1)[1].replace(b"Content-Length", b"X-Length")
            while self._answers:
                line, edits = self._answers.pop(0)
                body = b"\r\n\r\n" + ANSWER.encode()
                self._transport.sendto(mutate(line.encode() + b"\r\n" + head + body, edits), address)


CHALLENGE = 'Digest realm="pbx", nonce="n", qop="auth", algorithm=SHA-256, stale=true'
LINES = st.sampled_from(
    [
        "SIP/2.0 183 Progress",
        "SIP/2.0 200 OK\r\nRecord-Route: <sip:127.0.0.1:9;lr>",
        "SIP/2.0 302 Moved\r\nContact: <sip:x@y>",
        f"SIP/2.0 401 No\r\nWWW-Authenticate: {CHALLENGE}",
        f"SIP/2.0 407 No\r\nProxy-Authenticate: {CHALLENGE}",
        "SIP/2.0 422 Short\r\nMin-SE: 1800",
        "SIP/2.0 486 Busy",
    ]
)


@FUZZ
@given(st.lists(st.tuples(LINES, EDITS), max_size=4))
def test_mutated_responses_crash_nothing(answers: list[tuple[str, Edits]]) -> None:
    async def talk() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: StrangePeer(answers), local_addr=("127.0.0.1", 0))
        peer = Peer("udp", *transport.get_extra_info("sockname"))
        async with run_agent() as caller:
            order = order_call(peer, credentials=SipCredentials("ada", "right"), quota=TrunkQuota("out"))
            with suppress(CallRefused, CallRedirected, PeerUnreachable, TimeoutError):
                async with asyncio.timeout(60):
                    await (await caller.agent.invite(order)).bye()
            await asyncio.sleep(2000)
            assert caller.count_transactions() == 0
            assert caller.count_calls("out") == 0
        transport.close()

    with expect_no_errors():
        run_virtually(talk())


@FUZZ
@given(st.lists(st.tuples(st.sampled_from(SEEDS), EDITS), max_size=5))
def test_mutated_requests_within_a_call_crash_nothing(
    messages: list[tuple[bytes, Edits]],
) -> None:
    """The mutations have the dialog's identifiers, so that they pass as the peer's."""

    def address(data: bytes, dialog: Dialog) -> bytes:
        lines = [line for line in data.split(b"\r\n") if not line.startswith((b"From:", b"To:", b"Call-ID:"))]
        state = dialog.state
        own = f"From: {state.remote}\r\nTo: {state.local}\r\nCall-ID: {state.call_id}".encode()
        return b"\r\n".join([lines[0], own, *lines[1:]])

    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            (await caller.agent.invite(order_call(callee.peer))).events = RecordedCall()
            await wait_for(callee.events.answered)
            dialog = callee.events.dialogs[0]
            for seed, edits in messages:
                callee.agent.endpoint.receive_data(address(mutate(seed, edits), dialog), STRANGE)
            await asyncio.sleep(1)
            await dialog.bye()
            await asyncio.sleep(2000)
            assert callee.count_transactions() == 0
            assert callee.count_calls("test") == 0

    with expect_no_errors():
        run_virtually(talk())


def test_a_flood_of_scans_leaves_no_memory() -> None:
    async def talk() -> None:
        limits = ScannerLimits(max_sources=100, strangers_per_second=10**9)
        events = RecordedEvents(decide=lambda _request, _peer: Admitted([TrunkQuota("none", 0)]), trunk_addresses=())
        async with run_agent(events, limits=limits) as agent:
            for number in range(5000):
                source = Peer("udp", f"198.51.{number // 250}.{number % 250}", 5060)
                agent.agent.endpoint.receive_data(b"OPTIONS garbage\r\n\r\n" + str(number).encode(), source)
            assert len(agent.agent.guard._records) == 100

    run_virtually(talk())
