"""Your own SIP trunks as a carrier, and the gateway that connects them."""

import click
from switchboard.plugin_sdk import hookimpl

from switchboard_telephony_sip.cli.group import sip
from switchboard_telephony_sip.gateway.process import SipGateway
from switchboard_telephony_sip.provider import SipTelephony


@hookimpl
def telephony_providers() -> list[type[SipTelephony]]:
    return [SipTelephony]


@hookimpl
def provider_processes() -> list[type[SipGateway]]:
    return [SipGateway]


@hookimpl
def cli_commands() -> list[click.Command]:
    return [sip]
