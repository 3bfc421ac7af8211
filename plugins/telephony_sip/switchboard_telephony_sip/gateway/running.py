"""A running gateway: its sockets, its accounts, and its drain."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from ipaddress import ip_address
from typing import Final

import aiohttp
import structlog
from aiohttp import web
from switchboard.plugin_sdk import ProcessContext

from switchboard_telephony_sip.commands import OPERATOR_PURPOSE
from switchboard_telephony_sip.gateway.control import ControlApi
from switchboard_telephony_sip.gateway.directory import TrunkDirectory, build_account
from switchboard_telephony_sip.gateway.gateway_metrics import GatewayMetrics
from switchboard_telephony_sip.gateway.legs import wait_for_any
from switchboard_telephony_sip.gateway.measuring import TestCalls
from switchboard_telephony_sip.gateway.switching import Switching
from switchboard_telephony_sip.gateway.trunks import Trunks
from switchboard_telephony_sip.gateways import get_gateway_place
from switchboard_telephony_sip.media.place import MediaPlace
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signaling.admission import TrunkBusy
from switchboard_telephony_sip.signaling.peers import ListenAddress, TlsCertificate
from switchboard_telephony_sip.signaling.user_agent import SipUserAgent

logger = structlog.get_logger()
RESOLVE_SECONDS: Final = 60.0
END_SECONDS: Final = 5.0
"""Time for the last notices once all calls were hung up."""
ELSEWHERE: Final = {socket.AF_INET: ("192.0.2.1", 9), socket.AF_INET6: ("2001:db8::1", 9)}
"""Addresses of other networks (RFC 5737 and RFC 3849), to which nothing is sent."""


async def run_sip_gateway(options: Mapping[str, str], context: ProcessContext[SipSettings]) -> None:
    """Run a gateway with the options of its command until the context ends."""
    place = get_gateway_place(options["control_url"] or f"http://{options['control_host']}:{options['control_port']}")
    metrics = GatewayMetrics(context.metrics)
    directory = TrunkDirectory(place)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        address = find_announced_address(options)
        first, _, last = options["rtp_ports"].partition("-")
        ports = range(int(first), int(last) + 1)
        media_place = MediaPlace(options["sip_host"], advertised_host=address, ports=ports)
        switching = Switching(place, directory, http, media_place, metrics, context.find_number_owner)
        agent = SipUserAgent(_list_listeners(options), switching, advertised_host=address)
        switching.agent = agent
        agent.endpoint.trace = switching.traces.record
        _report_refusals(agent, metrics)
        metrics.live.set_function(lambda: len(switching.calls))
        trunks = Trunks(agent, directory, metrics)
        test_calls = TestCalls(media_place, agent)
        operator_secrets = context.derive_secrets(OPERATOR_PURPOSE)
        control = ControlApi(switching, trunks, test_calls, agent.guard, operator_secrets)
        async with AsyncExitStack() as listening:
            listening.callback(asyncio.create_task(_resolve(directory)).cancel)
            async for accounts in context.watch_accounts():
                directory.replace([build_account(account) for account in accounts])
                await directory.resolve_hosts()
                if not agent.is_started:
                    # Without any account, calls and commands would be refused.
                    await _listen(listening, agent, control, options)
                    logger.info("SIP gateway is ready", place=place)
                await trunks.follow_accounts()
            agent.reception.accepts_calls, control.is_draining = False, True
            await trunks.close()
            await test_calls.close()
            await _drain(switching, context, float(options["drain_seconds"]))


async def _listen(
    listening: AsyncExitStack, agent: SipUserAgent, control: ControlApi, options: Mapping[str, str]
) -> None:
    """Take calls and commands until `listening` is closed."""
    listening.push_async_callback(agent.stop)
    await agent.start()
    runner = web.AppRunner(control.create_application(), access_log=None, handle_signals=False)
    listening.push_async_callback(runner.cleanup)
    await runner.setup()
    await web.TCPSite(runner, options["control_host"], int(options["control_port"])).start()


async def _drain(switching: Switching, context: ProcessContext[SipSettings], seconds: float) -> None:
    """Wait for the live calls, then hang up those that are left."""
    logger.info("SIP gateway drains", live_calls=len(switching.calls))
    idle = asyncio.create_task(switching.wait_until_idle())
    await wait_for_any(idle, context.stop_at_once, seconds=seconds)
    idle.cancel()
    await switching.close(END_SECONDS)


def find_announced_address(options: Mapping[str, str]) -> str:
    """Return the address to announce to trunks: the given one, that of the listeners, or this machine's own."""
    given = options["public_address"] or options["sip_host"]
    if not ip_address(given).is_unspecified:
        return given
    family = socket.AF_INET6 if ":" in given else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE[family])
        except OSError:
            return "::1" if family == socket.AF_INET6 else "127.0.0.1"
        return str(probe.getsockname()[0])


def _list_listeners(options: Mapping[str, str]) -> list[ListenAddress]:
    listeners = []
    host, port, tls_port = options["sip_host"], int(options["sip_port"]), int(options["tls_port"])
    if port:
        listeners += [ListenAddress("udp", host, port), ListenAddress("tcp", host, port)]
    if tls_port:
        certificate = TlsCertificate(options["tls_certificate"], options["tls_key"])
        listeners.append(ListenAddress("tls", host, tls_port, certificate))
    return listeners


def _report_refusals(agent: SipUserAgent, metrics: GatewayMetrics) -> None:
    """Log and count what is refused before it is a call: scanners, and calls beyond a trunk's limits."""

    def report_ban(address: str, seconds: float) -> None:
        metrics.bans.inc()
        logger.warning("SIP address is ignored after refused messages", address=address, seconds=seconds)

    def report_limit(refusal: TrunkBusy) -> None:
        metrics.limited.labels(refusal.limit).inc()
        trunk = refusal.quota.name.rpartition("/")[2]
        logger.warning("SIP call refused at a limit of its trunk", trunk=trunk, limit=refusal.limit)

    agent.guard.on_ignored = report_ban
    agent.quotas.on_busy = report_limit
    metrics.ignored.set_function(lambda: len(agent.guard.list_ignored()))


async def _resolve(directory: TrunkDirectory) -> None:
    while True:
        await asyncio.sleep(RESOLVE_SECONDS)
        await directory.resolve_hosts()
