"""Digest authentication, registration, refusal of scanners, and TLS."""

import asyncio
import socket
from pathlib import Path

import pytest
from aiosipua.message import SipRequest
from switchboard_telephony_sip.signaling.admission import ScannerLimits, TrunkQuota
from switchboard_telephony_sip.signaling.digest import DigestAccount, SipCredentials
from switchboard_telephony_sip.signaling.endpoint import TracedMessage
from switchboard_telephony_sip.signaling.messages import parse_sip_message
from switchboard_telephony_sip.signaling.outgoing import CallRefused
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, PeerUnreachable, TlsCertificate
from switchboard_telephony_sip.signaling.reception import DigestRequired, UnknownCaller
from switchboard_telephony_sip.signaling.registration import RegistrationAccount

from tests.fixtures.debian_tools import find_tool, run_to_end
from tests.fixtures.sip_peers import (
    RecordedCall,
    RecordedEvents,
    RegistrarServer,
    TestAgent,
    order_call,
    run_agent,
    run_virtually,
    wait_for,
)

ADA = SipCredentials("ada", "right")
TRUNK = TrunkQuota("phones")


def require_digest(_request: SipRequest, _peer: Peer) -> DigestRequired:
    return DigestRequired("switchboard.example", {"ada": [DigestAccount("right", TRUNK)]})


def refuse_all(_request: SipRequest, _peer: Peer) -> UnknownCaller:
    return UnknownCaller()


def phones() -> RecordedEvents:
    return RecordedEvents(decide=require_digest, trunk_addresses=())


def test_a_caller_authenticates_by_digest() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent(phones()) as callee:
            dialog = await caller.agent.invite(order_call(callee.peer, credentials=ADA))
            dialog.events = RecordedCall()
            await wait_for(callee.events.answered)
            assert callee.events.invites[0].trunk == TRUNK
            await dialog.bye()
            sent = await caller.agent.message(callee.peer, "sip:a@x.example", "sip:b@y.example", "Hi", ADA)
            assert sent == 200

    run_virtually(talk())


@pytest.mark.parametrize("credentials", [None, SipCredentials("ada", "wrong"), SipCredentials("eve", "right")])
def test_a_caller_without_the_password_is_refused(credentials: SipCredentials | None) -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent(phones()) as callee:
            with pytest.raises(CallRefused, match="401"):
                await caller.agent.invite(order_call(callee.peer, credentials=credentials))
            assert callee.events.invites == []
            assert callee.count_transactions() == 0

    run_virtually(talk())


def test_a_recorded_authorization_is_not_accepted_again() -> None:
    """Not for another call, and not for another number."""

    async def talk() -> None:
        async with run_agent() as caller, run_agent(phones()) as callee:
            await caller.agent.invite(order_call(callee.peer, credentials=ADA))
            sent = [message.data for message in callee.messages if b"Authorization: Digest" in message.data]
            recorded = parse_sip_message(sent[0])
            authorization = ("Authorization", recorded.headers.get_first("authorization") or "")
            for target in (order_call(callee.peer).target, "sip:+19005550100@127.0.0.1"):
                with pytest.raises(CallRefused, match="401"):
                    await caller.agent.invite(order_call(callee.peer, headers=(authorization,), target=target))
            assert len(callee.events.invites) == 1

    run_virtually(talk())


def test_scanners_get_no_answer_and_are_ignored() -> None:
    async def talk() -> None:
        events = RecordedEvents(decide=refuse_all, trunk_addresses=())
        async with run_agent() as scanner, run_agent(events, limits=ScannerLimits(strikes=3)) as callee:
            for _ in range(4):
                with pytest.raises(PeerUnreachable):
                    await scanner.agent.invite(order_call(callee.peer, first_response_seconds=0.4))
            assert list(callee.agent.guard.list_ignored()) == ["127.0.0.1"]
            assert callee.list_start_lines("out") == []
            assert len(callee.list_start_lines("in")) == 3
            events.decide = require_digest
            await asyncio.sleep(601)
            await scanner.agent.invite(order_call(callee.peer, credentials=ADA))

    run_virtually(talk())


def test_a_password_cannot_be_guessed() -> None:
    async def talk() -> None:
        async with run_agent() as guesser, run_agent(phones()) as callee:
            answers = []
            for number in range(10):
                order = order_call(
                    callee.peer, credentials=SipCredentials("ada", str(number)), first_response_seconds=0.4
                )
                try:
                    await guesser.agent.invite(order)
                except (CallRefused, PeerUnreachable) as error:
                    answers.append(type(error))
            assert answers == [CallRefused] * 4 + [PeerUnreachable] * 6

    run_virtually(talk())


def test_trunks_are_never_ignored_though_their_address_be_forged() -> None:
    async def talk() -> None:
        async with run_agent() as caller, run_agent() as callee:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
                for _ in range(100):
                    forger.sendto(b"REGISTER sip:x SIP/2.0\r\nVia: garbage\r\n\r\n", ("127.0.0.1", callee.peer.port))
            await caller.agent.invite(order_call(callee.peer))
            assert not callee.agent.guard.list_ignored()

    run_virtually(talk())


def test_messages_of_strangers_are_limited_together() -> None:
    async def talk() -> None:
        limits = ScannerLimits(strikes=1000, strangers_per_second=10)
        events = RecordedEvents(decide=refuse_all, trunk_addresses=())
        async with run_agent(events, limits=limits) as callee:
            lines = "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK{0}\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\n"
            rest = "Call-ID: {0}\r\nCSeq: 1 OPTIONS\r\n\r\n"
            for number in range(100):
                data = f"OPTIONS sip:c@d SIP/2.0\r\n{lines}{rest}".format(number).encode()
                callee.agent.endpoint.receive_data(data, Peer("udp", f"198.51.100.{number}", 5060))
            assert len(callee.list_start_lines("in")) == 10

    run_virtually(talk())


def test_a_trunk_registers_refreshes_and_unregisters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchboard_telephony_sip.signaling.registration.LONGEST_REFRESH_SECONDS", 500)

    async def talk() -> None:
        async with run_agent() as gateway, RegistrarServer("ada", "right", granted=100).run() as registrar:
            account = RegistrationAccount(registrar.peer, "sip:ada@pbx", ADA)
            registration = gateway.agent.register(account)
            changes: list[bool] = []
            registration.on_change = lambda: changes.append(registration.is_registered)
            await wait_for(registrar.changed)
            assert list(registrar.bindings.values()) == [100]
            assert list(registrar.bindings) == [f"<sip:ada@127.0.0.1:{gateway.peer.port}>"]
            await asyncio.sleep(1000)
            assert registrar.requests == pytest.approx(2 * 1000 / 80, abs=3)
            registrar.min_expires = 600
            await asyncio.sleep(200)
            assert list(registrar.bindings.values()) == [100]
            registrar.min_expires = registrar.granted = 2**32 - 1
            await asyncio.sleep(200)
            assert list(registrar.bindings.values()) == [2**32 - 1]
            before = registrar.requests
            await asyncio.sleep(1000)
            assert registrar.requests > before, "a registrar that restarts may lose a long binding"
            await registration.close()
            assert registrar.bindings == {}
            assert changes == [True, False]

    run_virtually(talk())


def test_a_registration_comes_back_after_an_outage() -> None:
    async def talk() -> None:
        async with run_agent() as gateway, RegistrarServer("ada", "right").run() as registrar:
            registrar.status = 503
            registration = gateway.agent.register(RegistrationAccount(registrar.peer, "sip:ada@pbx", ADA))
            await asyncio.sleep(600)
            assert (registration.is_registered, registration.failure) == (False, "503 Service Unavailable")
            assert 8 <= registrar.requests <= 20
            registrar.status = None
            await wait_for(registrar.changed, 80)
            await asyncio.sleep(1)
            assert registration.is_registered
            assert registration.failure == ""

    run_virtually(talk())


def test_a_registration_outlives_the_loss_of_the_route_behind_its_answer() -> None:
    async def talk() -> None:
        async with run_agent() as gateway, RegistrarServer("ada", "right").run() as registrar:
            transports = gateway.agent.endpoint._transports
            find_own_address = transports.find_own_address

            def find_no_route(peer: Peer) -> tuple[str, int]:
                raise PeerUnreachable(f"no route to {peer.host}")

            def lose_route(message: TracedMessage) -> None:
                if message.data.startswith(b"SIP/2.0 200"):
                    transports.find_own_address = find_no_route  # type: ignore[method-assign]

            gateway.agent.endpoint.trace = lose_route
            registration = gateway.agent.register(RegistrationAccount(registrar.peer, "sip:ada@pbx", ADA))
            await wait_for(registrar.changed)
            await asyncio.sleep(300)
            assert (registration.is_registered, registration.failure) == (False, "no route to 127.0.0.1")
            gateway.agent.endpoint.trace = None
            transports.find_own_address = find_own_address  # type: ignore[method-assign]
            await asyncio.sleep(80)
            assert registration.is_registered

    run_virtually(talk())


def test_a_wrong_password_is_tried_seldom() -> None:
    async def talk() -> None:
        async with run_agent() as gateway, RegistrarServer("ada", "other").run() as registrar:
            registration = gateway.agent.register(RegistrationAccount(registrar.peer, "sip:ada@pbx", ADA))
            await asyncio.sleep(3600)
            assert registration.failure == "401 Unauthorized"
            assert registrar.requests < 3 * 3600 / 60

    run_virtually(talk())


@pytest.fixture
async def certificate(tmp_path: Path) -> TlsCertificate:
    """Return a certificate of 127.0.0.1 that signs itself."""
    chain, key = str(tmp_path / "chain.pem"), str(tmp_path / "key.pem")
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    create = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", chain)
    await run_to_end(find_tool("openssl"), *create, *name)
    return TlsCertificate(chain, key)


async def test_calls_over_tls_check_the_certificate(certificate: TlsCertificate) -> None:
    async def talk(caller: TestAgent, callee: TestAgent) -> None:
        dialog = await caller.agent.invite(order_call(callee.peer))
        dialog.events = call = RecordedCall()
        await wait_for(callee.events.answered)
        await callee.events.dialogs[0].bye()
        await wait_for(call.ended)

    listeners = [ListenAddress("tls", "127.0.0.1", 0, certificate) for _ in range(2)]
    async with run_agent(None, listeners[0]) as callee:
        async with run_agent(None, listeners[1], trusted_certificates=certificate.chain) as caller:
            await talk(caller, callee)
        async with run_agent(None, listeners[1]) as distrustful:
            with pytest.raises(PeerUnreachable, match="certificate"):
                await distrustful.agent.invite(order_call(callee.peer))


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with run_agent(None, ListenAddress("tcp", "127.0.0.1", 0)) as callee:
        reader, writer = await asyncio.open_connection("127.0.0.1", callee.peer.port)
        assert await reader.read() == b""
        writer.close()


async def test_a_stream_answers_keep_alives_and_ends_with_a_message_that_is_too_long() -> None:
    async with run_agent(None, ListenAddress("tcp", "127.0.0.1", 0)) as callee:
        reader, writer = await asyncio.open_connection("127.0.0.1", callee.peer.port)
        writer.write(b"\r\n\r\n")
        assert await reader.readexactly(2) == b"\r\n"
        writer.write(b"OPTIONS sip:x SIP/2.0\r\nContent-Length: 100000000\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
