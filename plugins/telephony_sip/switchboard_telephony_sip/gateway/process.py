"""`switchboard sip-gateway`: a process that connects SIP trunks to the platform.

Every process of the platform loads this module, so what needs the SIP and RTP libraries is imported when it runs.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import click
from switchboard.plugin_sdk import ProcessContext, Provider, ProviderProcess, ProviderSettings

from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings

PORT: Final = click.IntRange(0, 65535)


def _option(name: str, default: object, text: str, kind: click.IntRange | type = str) -> click.Option:
    return click.Option([f"--{name}"], default=default, type=kind, show_default=True, show_envvar=True, help=text)


class SipGateway(ProviderProcess[SipSettings]):
    """Run a gateway between SIP trunks and the platform. Any number of gateways may run."""

    name: ClassVar[str] = "sip-gateway"
    title: ClassVar[str] = "Connect SIP trunks: hold SIP calls and their audio."
    provider: ClassVar[type[Provider[ProviderSettings]]] = SipTelephony
    options: ClassVar[Sequence[click.Option]] = (
        _option("control-host", "127.0.0.1", "Address of the control API, for the platform only."),
        _option("control-port", 8070, "Port of the control API.", PORT),
        _option("control-url", "", "Address of the control API as the setting `gateways` has it."),
        _option("sip-host", "0.0.0.0", "Address on which SIP is received."),  # noqa: S104  trunks call from anywhere
        _option("sip-port", 5060, "Port of SIP over UDP and TCP; 0 for none.", PORT),
        _option("tls-port", 0, "Port of SIP over TLS; 0 for none.", PORT),
        _option("tls-certificate", "", "File of the certificate chain for TLS, in PEM."),
        _option("tls-key", "", "File of the certificate's key, in PEM."),
        _option("public-address", "", "IP address at which trunks reach this machine, behind NAT or with 0.0.0.0."),
        _option("rtp-ports", "10000-19999", "Range of UDP ports for audio; a call takes two."),
        _option("drain-seconds", 600.0, "Longest wait for live calls when the gateway stops.", float),
    )

    def __init__(self, **options: object) -> None:
        self._options = {name: str(value) for name, value in options.items()}

    async def run(self, context: ProcessContext[SipSettings]) -> None:
        from switchboard_telephony_sip.gateway.running import run_sip_gateway

        await run_sip_gateway(self._options, context)
