"""Two organizations at one gateway, with trunks of the same address or the same user name."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from aiohttp import web
from pydantic import JsonValue
from structlog.testing import capture_logs
from switchboard.plugin_sdk import IncomingCall, ProviderError, RejectCall, TextMessageReceived
from switchboard_telephony_sip.callbacks import read_gateway_event, write_callback
from switchboard_telephony_sip.gateway import directory
from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.outgoing import CallRefused
from switchboard_telephony_sip.signaling.peers import Peer

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import FixedAccounts, build_provider_account, build_settings, run_gateway
from tests.fixtures.free_ports import find_free_port

FIRST, SECOND, NOBODYS = "+12125550101", "+12125550102", "+12125550103"
IDS: Mapping[str, UUID] = {FIRST: uuid4(), SECOND: uuid4()}
BUSY = 486
ELSEWHERE: dict[str, JsonValue] = {"hosts": ["192.0.2.1"], "digest": True}


@dataclass
class SharedGateway:
    """A gateway and a trunk. `asked` has what each organization was asked: by its number, the called number."""

    trunk: FarEnd
    sip_port: int
    accounts: FixedAccounts
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def call(self, number: str, credentials: SipCredentials | None = None) -> int:
        """Call a number, and return the status of the refusal."""
        with pytest.raises(CallRefused) as refused:
            await self.trunk.call(self.sip_port, number, credentials=credentials)
        return refused.value.status

    async def text(self, number: str) -> int:
        assert self.trunk.agent is not None
        receiver = f"sip:{number}@127.0.0.1:{self.sip_port}"
        return await self.trunk.agent.message(
            Peer("udp", "127.0.0.1", self.sip_port), "sip:+15550100001@127.0.0.1", receiver, "Hello"
        )

    async def receive(self, request: web.Request) -> web.Response:
        event = read_gateway_event(await request.read())
        assert isinstance(event, IncomingCall | TextMessageReceived)
        self.asked.append((request.match_info["number"], event.to_number))
        return web.Response(body=write_callback(RejectCall("busy")))


@asynccontextmanager
async def open_gateway(
    first: Mapping[str, JsonValue], second: Mapping[str, JsonValue], *, secrets: tuple[str, str] = ("1", "2")
) -> AsyncIterator[SharedGateway]:
    """Run a gateway with a trunk of each organization, which is the same host unless these settings say otherwise."""
    trunk, control_port = FarEnd(find_free_port()), find_free_port()
    await trunk.start()
    gateway = SharedGateway(trunk, find_free_port(), FixedAccounts([], dict(IDS)))
    application = web.Application()
    application.router.add_post("/{number}/events/{kind:call|text}", gateway.receive)
    application.router.add_post("/{number}/events/status", _ignore)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    for number, given, secret in zip(IDS, (first, second), secrets, strict=True):
        settings = dict(given)
        password = settings.pop("password", None)
        names = ["office", *(["backup"] if settings.pop("has_backup", False) else [])]
        fields: dict[str, JsonValue] = {"hosts": [f"127.0.0.1:{trunk.port}"], **settings}
        account = build_settings(
            control_port, *({"name": name, **fields} for name in names), signing_secret=secret * 16
        )
        if password is not None:
            account["passwords"] = dict.fromkeys(names, password)
        gateway.accounts.accounts = [
            *gateway.accounts.accounts,
            build_provider_account(account, f"{base}/{number}/events", IDS[number]),
        ]
    async with run_gateway(gateway.accounts, sip_port=gateway.sip_port, control_port=control_port):
        yield gateway
    await runner.cleanup()
    await trunk.stop()


async def _ignore(_: web.Request) -> web.Response:
    return web.Response()


async def test_a_call_from_a_shared_address_goes_to_the_owner_of_the_called_number_only() -> None:
    async with open_gateway({}, {}) as gateway:
        assert [await gateway.call(number) for number in (SECOND, FIRST)] == [BUSY, BUSY]
        assert gateway.asked == [(SECOND, SECOND), (FIRST, FIRST)]
        with capture_logs() as logs:
            assert await gateway.call(NOBODYS) == 404
        assert len(gateway.asked) == 2, "nobody hears of a call to a number of nobody"
        assert [entry["trunks"] for entry in logs if "called number" in entry["event"]] == [["office", "office"]]


async def test_each_trunk_of_a_shared_address_writes_numbers_its_own_way() -> None:
    async with open_gateway({"country": "US"}, {"country": "GB"}) as gateway:
        gateway.accounts.owners["+442079460102"] = IDS[SECOND]
        assert [await gateway.call(number) for number in ("2125550101", "02079460102")] == [BUSY, BUSY]
        assert gateway.asked == [(FIRST, FIRST), (SECOND, "+442079460102")]


async def test_a_domain_tells_trunks_of_a_shared_address_apart() -> None:
    async with open_gateway({"domain": "first.example"}, {"domain": "127.0.0.1"}) as gateway:
        assert await gateway.call(NOBODYS) == BUSY
        assert gateway.asked == [(SECOND, NOBODYS)]


async def test_a_text_message_from_a_shared_address_goes_to_the_owner_of_its_number_only() -> None:
    async with open_gateway({"text_messages": True}, {"text_messages": True}) as gateway:
        assert [await gateway.text(number) for number in (SECOND, NOBODYS)] == [200, 404]
        assert gateway.asked == [(SECOND, SECOND)]


async def test_a_trunk_that_asks_for_credentials_shares_its_address_with_one_that_does_not() -> None:
    digest: Mapping[str, JsonValue] = {"digest": True, "username": "switchboard", "password": "right"}
    async with open_gateway({}, digest) as gateway:
        assert await gateway.call(FIRST) == BUSY
        assert await gateway.call(SECOND, SipCredentials("switchboard", "right")) == BUSY
        assert gateway.asked == [(FIRST, FIRST), (SECOND, SECOND)]
        assert await gateway.call(SECOND) == 401
        assert await gateway.call(SECOND, SipCredentials("switchboard", "wrong")) == 401
        assert len(gateway.asked) == 2


async def test_two_organizations_have_users_of_the_same_name() -> None:
    first = {**ELSEWHERE, "username": "switchboard", "password": "one"}
    async with open_gateway(first, {**first, "password": "two"}) as gateway:
        for password in ("two", "one"):
            assert await gateway.call(NOBODYS, SipCredentials("switchboard", password)) == BUSY
        assert gateway.asked == [(SECOND, NOBODYS), (FIRST, NOBODYS)]
        assert await gateway.call(NOBODYS, SipCredentials("switchboard", "three")) == 401


async def test_two_organizations_have_users_of_the_same_name_and_password() -> None:
    user = {**ELSEWHERE, "username": "switchboard", "password": "one"}
    async with open_gateway(user, user) as gateway:
        assert await gateway.call(SECOND, SipCredentials("switchboard", "one")) == BUSY
        assert await gateway.call(NOBODYS, SipCredentials("switchboard", "one")) == 404
        assert gateway.asked == [(SECOND, SECOND)]


@pytest.mark.parametrize("digest", [True, False])
async def test_trunks_of_one_organization_are_not_told_apart(digest: bool) -> None:
    """It hears of a call to a number that it does not have, as with a single trunk."""
    user: dict[str, JsonValue] = {"username": "switchboard", "password": "one", "digest": digest, "has_backup": True}
    async with open_gateway({**user, "hosts": ["127.0.0.1"]}, ELSEWHERE | {"digest": False}) as gateway:
        assert await gateway.call(NOBODYS, SipCredentials("switchboard", "one")) == BUSY
        assert gateway.asked == [(FIRST, NOBODYS)]


async def test_a_call_from_a_shared_address_comes_again_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(self: FixedAccounts, phone_number: str) -> UUID | None:
        raise ProviderError("the database cannot be read")

    monkeypatch.setattr(FixedAccounts, "find_number_owner", fail)
    async with open_gateway({}, {}) as gateway:
        assert await gateway.call(FIRST) == 503
        assert gateway.asked == []


async def test_an_account_with_the_signing_secret_of_another_is_left_out() -> None:
    with capture_logs() as logs:
        async with open_gateway({}, {}, secrets=("1", "1")) as gateway:
            assert await gateway.call(FIRST) == BUSY
            assert gateway.asked == [(FIRST, FIRST)]
    assert [entry["organization_id"] for entry in logs if "left out" in entry["event"]] == [str(IDS[SECOND])]


async def test_calls_come_in_while_hosts_are_resolved_after_a_change_of_another_organization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_resolved, resolving = asyncio.Event(), asyncio.Event()
    is_resolved.set()

    async def resolve(peer: Peer) -> Peer:
        resolving.set()
        await is_resolved.wait()
        return peer

    monkeypatch.setattr(directory, "resolve_peer", resolve)
    async with open_gateway({}, ELSEWHERE | {"digest": False}) as gateway:
        for event in (is_resolved, resolving):
            event.clear()
        gateway.accounts.changed.set()
        await resolving.wait()
        try:
            assert await gateway.call(FIRST) == BUSY
        finally:
            is_resolved.set()
