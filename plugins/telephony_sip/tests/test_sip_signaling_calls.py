"""Calls between two user agents over real sockets on loopback, with a virtual clock."""

import asyncio

import pytest
from switchboard_telephony_sip.signaling.admission import TrunkBusy, TrunkQuota
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.outgoing import CallRedirected, CallRefused
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.reception import Admitted
from switchboard_telephony_sip.signaling.transactions import TransactionTimeout

from tests.fixtures.sip_peers import (
    ANSWER,
    OFFER,
    RecordedCall,
    RecordedEvents,
    find_free_udp_port,
    lose_messages,
    order_call,
    run_agent,
    run_virtually,
    send_info,
    wait_for,
)


def test_a_call_is_answered_and_hung_up_by_the_caller() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            progress: list[tuple[int, str | None]] = []
            order = order_call(callee.peer, on_progress=lambda *seen: progress.append(seen))
            dialog = await caller.agent.invite(order)
            dialog.events = RecordedCall()
            assert (dialog.remote_sdp, dialog.local_sdp) == (ANSWER, OFFER)
            assert progress == [(180, None)]
            await wait_for(callee.events.answered)
            assert callee.events.invites[0].sdp == OFFER
            await dialog.bye()
            await wait_for(callee.events.calls[0].ended)
            assert caller.agent.dialogs == callee.agent.dialogs == []
            assert caller.list_start_lines("in") == [
                "SIP/2.0 100 Trying", "SIP/2.0 180 Ringing", "SIP/2.0 200 OK", "SIP/2.0 200 OK",
            ]  # fmt: skip

    run_virtually(talk())


def test_a_call_is_hung_up_by_the_callee() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            dialog = await caller.agent.invite(order_call(callee.peer))
            dialog.events = call = RecordedCall()
            await wait_for(callee.events.answered)
            await callee.events.dialogs[0].bye()
            await wait_for(call.ended)
            assert dialog.is_ended

    run_virtually(talk())


def test_transactions_end_after_their_timers() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            dialog = await caller.agent.invite(order_call(callee.peer))
            await dialog.bye()
            await asyncio.sleep(64)
            assert caller.count_transactions() == callee.count_transactions() == 0

    run_virtually(talk())


@pytest.mark.parametrize("status", [302, 404, 486, 503, 603])
def test_a_refusal_is_raised_with_its_status(status: int) -> None:
    async def refuse(invite: IncomingInvite) -> None:
        invite.reject(status, headers=[("Contact", "<sip:one@192.0.2.3>"), ("Contact", "<sip:two@192.0.2.4>")])

    async def talk() -> None:
        async with run_agent() as caller, run_agent(RecordedEvents(refuse)) as callee:
            with pytest.raises((CallRefused, CallRedirected)) as raised:
                await caller.agent.invite(order_call(callee.peer))
            assert isinstance(raised.value, CallRefused | CallRedirected)
            assert raised.value.status == status
            if isinstance(raised.value, CallRedirected):
                assert raised.value.contacts == ["sip:one@192.0.2.3", "sip:two@192.0.2.4"]

    run_virtually(talk())


def test_early_media_is_reported() -> None:
    async def ring_and_answer(invite: IncomingInvite) -> None:
        invite.ring(ANSWER)
        await invite.answer(ANSWER)

    async def talk() -> None:
        async with run_agent() as caller, run_agent(RecordedEvents(ring_and_answer)) as callee:
            progress: list[tuple[int, str | None]] = []
            await caller.agent.invite(order_call(callee.peer, on_progress=lambda *seen: progress.append(seen)))
            assert progress == [(183, ANSWER)]

    run_virtually(talk())


def test_a_canceled_call_is_given_up_at_the_callee() -> None:
    async def ring_only(invite: IncomingInvite) -> None:
        invite.ring()
        await asyncio.Event().wait()

    async def talk() -> None:
        ringing = asyncio.Event()
        async with run_agent() as caller, run_agent(RecordedEvents(ring_only)) as callee:
            order = order_call(callee.peer, on_progress=lambda *_: ringing.set(), quota=TrunkQuota("out"))
            placing = asyncio.create_task(caller.agent.invite(order))
            await wait_for(ringing)
            placing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await placing
            await asyncio.sleep(64)
            assert "SIP/2.0 487 Request Terminated" in caller.list_start_lines("in")
            assert caller.count_calls("out") == callee.count_calls("test") == 0
            assert caller.count_transactions() == callee.count_transactions() == 0

    run_virtually(talk())


def test_a_call_that_is_canceled_before_any_response_is_canceled_after_it() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            placing = asyncio.create_task(caller.agent.invite(order_call(callee.peer)))
            await asyncio.sleep(0)
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)
            await asyncio.sleep(64)
            assert callee.agent.dialogs == []
            last = [line.split()[0] for line in callee.list_start_lines("in")]
            assert last[:2] in (["INVITE", "CANCEL"], ["INVITE", "ACK"])

    run_virtually(talk())


def test_silence_ends_an_attempt_after_32_seconds_or_earlier() -> None:
    async def talk() -> None:
        silent = Peer("udp", "127.0.0.1", find_free_udp_port())
        async with run_agent() as caller:
            clock = asyncio.get_running_loop().time
            began = clock()
            with pytest.raises(PeerUnreachable):
                await caller.agent.invite(order_call(silent))
            assert clock() - began == pytest.approx(32, abs=0.5)
            assert len(caller.list_start_lines("out")) == 7
            began = clock()
            with pytest.raises(PeerUnreachable):
                await caller.agent.invite(order_call(silent, first_response_seconds=4.0))
            assert clock() - began == pytest.approx(4, abs=0.5)

    run_virtually(talk())


def test_an_answer_without_acknowledgment_ends_the_call() -> None:
    async def talk() -> None:
        failed = asyncio.Event()

        async def answer(invite: IncomingInvite) -> None:
            lose_messages(caller.agent, 1.0, 0)
            with pytest.raises(TransactionTimeout):
                await invite.answer(ANSWER)
            failed.set()

        async with run_agent() as caller, run_agent(RecordedEvents(answer)) as callee:
            await caller.agent.invite(order_call(callee.peer))
            await wait_for(failed)
            assert callee.agent.dialogs == []
            assert callee.count_calls("test") == 0

    run_virtually(talk())


@pytest.mark.parametrize("seed", range(10))
def test_calls_survive_the_loss_of_a_third_of_all_datagrams(seed: int) -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            lose_messages(caller.agent, 0.33, seed)
            lose_messages(callee.agent, 0.33, seed + 100)
            dialog = await caller.agent.invite(order_call(callee.peer))
            dialog.events = RecordedCall()
            await wait_for(callee.events.answered)
            assert len(callee.events.invites) == 1
            assert await send_info(dialog, "application/dtmf-relay", "Signal=5\r\n") == 200
            await dialog.bye()
            await wait_for(callee.events.calls[0].ended)
            assert callee.events.calls[0].infos == [("application/dtmf-relay", "Signal=5\r\n")]

    run_virtually(talk())


def test_calls_over_tcp_and_ipv6() -> None:
    async def talk(transport: str, host: str) -> None:
        listeners = [ListenAddress(transport, host, 0) for _ in range(2)]  # type: ignore[arg-type]
        async with run_agent(None, listeners[0]) as caller, run_agent(None, listeners[1]) as callee:
            dialog = await caller.agent.invite(order_call(callee.peer))
            dialog.events = call = RecordedCall()
            await wait_for(callee.events.answered)
            await callee.events.dialogs[0].bye()
            await wait_for(call.ended)

    for transport, host in (("tcp", "127.0.0.1"), ("udp", "::1"), ("tcp", "::1")):
        run_virtually(talk(transport, host))


def test_a_refused_connection_makes_the_peer_unreachable() -> None:
    async def talk() -> None:
        async with run_agent(None, ListenAddress("tcp", "127.0.0.1", 0)) as caller:
            with pytest.raises(PeerUnreachable, match="no connection"):
                await caller.agent.invite(order_call(Peer("tcp", "127.0.0.1", 1)))
            with pytest.raises(PeerUnreachable, match="does not listen on udp"):
                await caller.agent.invite(order_call(Peer("udp", "127.0.0.1", 1)))
            with pytest.raises(PeerUnreachable, match="no address"):
                await caller.agent.invite(order_call(Peer("tcp", "no-such-host.invalid", 1)))

    run_virtually(talk())


def test_trunks_have_limits_of_calls_and_of_calls_per_second() -> None:
    async def talk() -> None:
        events = RecordedEvents(decide=lambda _request, _peer: Admitted([TrunkQuota("in", 2, 1.0)]))
        async with run_agent() as caller, run_agent(events) as callee:
            first = await caller.agent.invite(order_call(callee.peer))
            with pytest.raises(CallRefused) as too_fast:
                await caller.agent.invite(order_call(callee.peer))
            await asyncio.sleep(2)
            await caller.agent.invite(order_call(callee.peer))
            await asyncio.sleep(2)
            with pytest.raises(CallRefused) as too_many:
                await caller.agent.invite(order_call(callee.peer))
            assert too_fast.value.status == too_many.value.status == 503
            assert too_fast.value.headers["retry-after"] == ["1"]
            await first.bye()
            await asyncio.sleep(2)
            await caller.agent.invite(order_call(callee.peer))
            with pytest.raises(TrunkBusy):
                await caller.agent.invite(order_call(callee.peer, quota=TrunkQuota("out", 0)))

    run_virtually(talk())


def test_a_draining_gateway_takes_no_calls() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            uri = f"sip:{callee.peer.host}:{callee.peer.port}"
            assert await caller.agent.options(callee.peer, uri) == 200
            callee.agent.reception.accepts_calls = False
            assert await caller.agent.options(callee.peer, uri) == 503
            with pytest.raises(CallRefused, match="503"):
                await caller.agent.invite(order_call(callee.peer))

    run_virtually(talk())


def test_text_messages_are_taken_and_sent() -> None:
    async def talk() -> None:
        async with run_agent() as sender, run_agent() as receiver:
            receiver.events.message_status = 202
            sent = await sender.agent.message(receiver.peer, "sip:a@x.example", "sip:b@y.example", "Grüße")
            assert (sent, receiver.events.messages) == (202, ["Grüße"])

    run_virtually(talk())


def test_a_failing_gateway_answers_500() -> None:
    async def fail(_invite: IncomingInvite) -> None:
        raise RuntimeError("a defect")

    async def talk() -> None:
        async with run_agent() as caller, run_agent(RecordedEvents(fail)) as callee:
            with pytest.raises(CallRefused, match="500"):
                await caller.agent.invite(order_call(callee.peer))

    run_virtually(talk())
