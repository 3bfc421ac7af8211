"""Requests within a call: new offers, transfers, session timers, and takeovers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiosipua.message import SipRequest
from switchboard_telephony_sip.signaling.dialogs import Dialog, OfferRefused
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.messages import build_request
from switchboard_telephony_sip.signaling.outgoing import CallRefused
from switchboard_telephony_sip.signaling.transactions import TransactionTimeout

from tests.fixtures.sip_peers import (
    ANSWER,
    OFFER,
    RecordedCall,
    RecordedEvents,
    TestAgent,
    lose_messages,
    order_call,
    run_agent,
    run_virtually,
    send_info,
    wait_for,
)

HOLD = OFFER + "a=sendonly\r\n"
SHORT_SESSION = (("Session-Expires", "60"),)


@asynccontextmanager
async def talk_to(
    events: RecordedEvents | None = None, **changes: object
) -> AsyncIterator[tuple[TestAgent, TestAgent, Dialog, RecordedCall]]:
    """Yield caller, callee, the caller's dialog, and its owner, when the call is answered."""
    async with run_agent() as caller, run_agent(events) as callee:
        dialog = await caller.agent.invite(order_call(callee.peer, **changes))
        dialog.events = owner = RecordedCall()
        await wait_for(callee.events.answered)
        yield caller, callee, dialog, owner


def test_both_sides_change_the_session() -> None:
    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, owner):
            assert await dialog.reinvite(HOLD) == ANSWER
            other = callee.events.dialogs[0]
            assert callee.events.calls[0].offers == [HOLD]
            assert (other.remote_sdp, dialog.local_sdp) == (HOLD, HOLD)
            assert await other.reinvite(OFFER) == ANSWER
            assert owner.offers == [OFFER]

    run_virtually(talk())


def test_an_offer_that_is_refused_leaves_the_call() -> None:
    class Refusing(RecordedCall):
        async def on_offer(self, sdp: str) -> str:
            raise OfferRefused

    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, _owner):
            callee.events.dialogs[0]._events = asyncio.get_running_loop().create_future()
            callee.events.dialogs[0].events = Refusing()
            with pytest.raises(CallRefused, match="488"):
                await dialog.reinvite(HOLD)
            assert dialog.local_sdp == OFFER
            assert not dialog.is_ended

    run_virtually(talk())


def test_offers_that_cross_are_repeated() -> None:
    async def talk() -> None:
        async with talk_to() as (caller, callee, dialog, owner):
            other = callee.events.dialogs[0]
            await asyncio.gather(dialog.reinvite(HOLD), other.reinvite(HOLD))
            assert "SIP/2.0 491 Request Pending" in caller.list_start_lines("in")
            assert owner.offers == callee.events.calls[0].offers == [HOLD]

    run_virtually(talk())


def test_a_reinvite_without_an_offer_gets_the_present_description() -> None:
    async def talk() -> None:
        async with talk_to() as (caller, _, dialog, _owner):
            contact = dialog.build_contact()
            response = await caller.agent.endpoint.ask(
                dialog.state.build_request("INVITE", [contact]), dialog.state.find_next_hop()
            )
            assert (response.status_code, response.text) == (200, ANSWER)

    run_virtually(talk())


def test_a_call_without_an_offer_takes_the_answer_from_the_acknowledgment() -> None:
    answers: list[str] = []
    answered = asyncio.Event()

    async def answer(invite: IncomingInvite) -> None:
        assert invite.sdp is None
        dialog = await invite.answer(OFFER)
        answers.append(dialog.remote_sdp)
        answered.set()

    async def talk() -> None:
        async with run_agent() as caller, run_agent(RecordedEvents(answer)) as callee:
            headers = [
                ("Max-Forwards", "70"),
                ("From", "<sip:a@x.example>;tag=1"),
                ("To", "<sip:b@y.example>"),
                ("Call-ID", "offerless"),
                ("CSeq", "1 INVITE"),
                ("Contact", caller.agent.endpoint.build_contact(callee.peer)),
            ]
            response = await caller.agent.endpoint.ask(build_request("INVITE", "sip:b@y.example", headers), callee.peer)
            acknowledgment = [
                *headers[:2],
                ("To", response.headers.get_first("to") or ""),
                headers[3],
                ("CSeq", "1 ACK"),
                ("Content-Type", "application/sdp"),
            ]
            ack = build_request("ACK", "sip:b@y.example", acknowledgment, ANSWER)
            caller.agent.endpoint.stamp_via(ack, callee.peer)
            caller.agent.endpoint.transmit(ack, callee.peer, lambda _: None)
            await wait_for(answered)
            assert answers == [ANSWER]

    run_virtually(talk())


def test_a_transfer_is_reported_to_its_end() -> None:
    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, _owner):
            statuses = [status async for status in dialog.refer("sip:+15550142@pbx.example")]
            assert statuses == [100, 200]
            assert callee.events.calls[0].referrals == [("sip:+15550142@pbx.example", None)]
            callee.events.calls[0].referral_status = 486
            assert [status async for status in dialog.refer("tel:+15550143")] == [100, 486]

    run_virtually(talk())


def test_a_transfer_ends_with_the_call() -> None:
    class HangingUp(RecordedCall):
        async def on_refer(self, target: str, replaces: str | None) -> int:
            await asyncio.Event().wait()
            return 200

    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, _owner):
            other = callee.events.dialogs[0]
            other._events = asyncio.get_running_loop().create_future()
            other.events = HangingUp()
            statuses = []
            async for status in dialog.refer("sip:+15550142@pbx.example"):
                statuses.append(status)
                await other.bye()
            assert statuses == [100]

    run_virtually(talk())


def test_an_attended_transfer_takes_over_the_other_call() -> None:
    """Ada talks to Bob and to Carol, and connects the two: Bob calls Carol in place of Ada."""

    async def talk() -> None:
        async with run_agent() as ada, run_agent() as bob, run_agent() as carol:
            to_bob = await ada.agent.invite(order_call(bob.peer))
            to_carol = await ada.agent.invite(order_call(carol.peer))
            to_bob.events = RecordedCall()
            to_carol.events = owner = RecordedCall()
            await wait_for(bob.events.answered)
            await wait_for(carol.events.answered)
            target = f"sip:carol@127.0.0.1:{carol.peer.port}"
            statuses = [status async for status in to_bob.refer(target, replaces=to_carol)]
            assert statuses == [100, 200]
            (given, replaces) = bob.events.calls[0].referrals[0]
            assert given == target
            carol.events.answered.clear()
            await bob.agent.invite(order_call(carol.peer, headers=(("Replaces", replaces or ""),)))
            await wait_for(carol.events.answered)
            assert carol.events.invites[1].replaces is carol.events.dialogs[0]
            await wait_for(owner.ended)
            assert len(carol.agent.dialogs) == 1

    run_virtually(talk())


@pytest.mark.parametrize(
    ("replaces", "status"), [("unknown;to-tag=1;from-tag=2", 481), ("no-tags", 400), ("a;to-tag=;from-tag=2", 400)]
)
def test_a_takeover_of_an_unknown_call_is_refused(replaces: str, status: int) -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            with pytest.raises(CallRefused) as refused:
                await caller.agent.invite(order_call(callee.peer, headers=(("Replaces", replaces),)))
            assert refused.value.status == status

    run_virtually(talk())


def test_sessions_are_refreshed_until_the_end() -> None:
    async def talk() -> None:
        async with talk_to(session_seconds=90) as (caller, callee, dialog, _owner):
            await asyncio.sleep(3600)
            assert not dialog.is_ended
            refreshes = [line for line in caller.list_start_lines("out") if line.startswith("UPDATE")]
            assert len(refreshes) == pytest.approx(3600 / 45, abs=2)
            await callee.events.dialogs[0].bye()

    run_virtually(talk())


@pytest.mark.parametrize("silent", ["caller", "callee"])
def test_a_session_that_is_not_refreshed_ends_on_both_sides(silent: str) -> None:
    async def talk() -> None:
        async with talk_to(session_seconds=90) as (caller, callee, dialog, owner):
            lose_messages((caller if silent == "caller" else callee).agent, 1.0, 0)
            await asyncio.sleep(200)
            assert dialog.is_ended
            assert callee.events.dialogs[0].is_ended
            assert owner.expired.is_set()
            assert callee.events.calls[0].expired.is_set() or callee.events.calls[0].ended.is_set()
            assert callee.count_calls("test") == 0

    run_virtually(talk())


def test_a_session_of_less_than_90_seconds_is_lengthened() -> None:
    async def send_short_session(caller: TestAgent, callee: TestAgent) -> None:
        headers = [
            ("Max-Forwards", "70"),
            ("From", "<sip:a@x.example>;tag=1"),
            ("To", "<sip:b@y.example>"),
            ("Call-ID", "short"),
            ("CSeq", "1 INVITE"),
            ("Contact", caller.agent.endpoint.build_contact(callee.peer)),
            ("Session-Expires", "60"),
        ]
        response = await caller.agent.endpoint.ask(build_request("INVITE", "sip:b@y.example", headers), callee.peer)
        assert (response.status_code, response.headers.get("min-se")) == (422, ["90"])

    async def refuse_once(invite: IncomingInvite) -> None:
        if invite.request.headers.get_first("min-se") == "90":
            invite.reject(422, headers=[("Min-SE", "2000")])
        else:
            assert invite.request.headers.get_first("session-expires") == "2000"
            await invite.answer(ANSWER)

    async def talk() -> None:
        async with run_agent() as caller, run_agent(RecordedEvents(refuse_once)) as callee:
            await send_short_session(caller, callee)
            assert (await caller.agent.invite(order_call(callee.peer))).local_sdp == OFFER

    run_virtually(talk())


def test_a_call_that_the_peer_has_lost_ends() -> None:
    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, owner):
            callee.events.dialogs[0].end()
            assert await send_info(dialog, "application/dtmf", "5") == 481
            await wait_for(owner.expired)
            assert dialog.is_ended

    run_virtually(talk())


def test_a_silent_peer_ends_the_call_at_the_next_request() -> None:
    async def talk() -> None:
        async with talk_to() as (_, callee, dialog, owner):
            lose_messages(callee.agent, 1.0, 0)
            with pytest.raises(TransactionTimeout):
                await send_info(dialog, "application/dtmf", "5")
            await wait_for(owner.expired)

    run_virtually(talk())


def test_old_and_unknown_requests_of_a_call_are_refused() -> None:
    async def talk() -> None:
        async with talk_to() as (caller, _, dialog, _owner):

            async def ask(request: SipRequest) -> int:
                return (await caller.agent.endpoint.ask(request, dialog.state.find_next_hop())).status_code

            await send_info(dialog, "application/dtmf", "5")
            assert await ask(dialog.state.build_request("INFO", cseq=1)) == 500
            assert await ask(dialog.state.build_request("PUBLISH")) == 405
            assert await ask(dialog.state.build_request("NOTIFY", [("Event", "presence")])) == 489
            assert await ask(dialog.state.build_request("NOTIFY", [("Event", "refer")], "SIP/2.0 200 OK")) == 481
            assert await ask(dialog.state.build_request("REFER", [("Refer-To", "<mailto:x@y>")])) == 400
            assert await ask(dialog.state.build_request("OPTIONS")) == 200

    run_virtually(talk())
