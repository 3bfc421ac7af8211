"""`switchboard sip bans` and `sip unban`: addresses that gateways ignore."""

import asyncio
import ipaddress
import json
from collections.abc import Mapping
from typing import TypeAlias

import click
from switchboard.plugin_sdk import Installation, ProviderError

from switchboard_telephony_sip.commands import OPERATOR_PURPOSE, BansCommand, LiftCommand, OperatorCommand
from switchboard_telephony_sip.gateways import Gateways
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings

Bans: TypeAlias = Mapping[str, float]


async def list_bans(installation: Installation) -> dict[str, Bans]:
    """Return the ignored addresses of each gateway, with the seconds that are left. Raises `click.ClickException`."""
    return await _ask_all(installation, BansCommand())


async def lift_ban(installation: Installation, address: str) -> list[str]:
    """Have every gateway read an address again; return those that ignored it. Raises `click.ClickException`."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise click.BadParameter(f"{address} is not an IP address") from None
    return [gateway for gateway, bans in (await _ask_all(installation, LiftCommand(address))).items() if bans]


async def _ask_all(installation: Installation, command: OperatorCommand) -> dict[str, Bans]:
    """Ask each gateway of all organizations once, with the secret of the installation."""
    addresses: dict[str, None] = {}
    for account in await installation.list_accounts(SipTelephony):
        if isinstance(account.settings, SipSettings):
            addresses.update(dict.fromkeys(account.settings.gateways))
    if not addresses:
        raise click.ClickException("no organization has a SIP trunk")
    secret = installation.derive_secrets(OPERATOR_PURPOSE)[-1]
    found = await asyncio.gather(*(_ask(gateway, secret, command) for gateway in addresses))
    return dict(zip(addresses, found, strict=True))


async def _ask(gateway: str, secret: str, command: OperatorCommand) -> Bans:
    gateways = Gateways([gateway], secret)
    try:
        return (await gateways.command(gateway, command)).bans
    except ProviderError as error:
        raise click.ClickException(f"gateway {gateway}: {error.message}") from error
    finally:
        await gateways.close()


def print_bans(found: Mapping[str, Bans], *, as_json: bool) -> None:
    """Print the ignored addresses of each gateway."""
    rows = [(gateway, address, round(left)) for gateway, bans in found.items() for address, left in bans.items()]
    if as_json:
        listed = [{"gateway": gateway, "address": address, "seconds_left": left} for gateway, address, left in rows]
        click.echo(json.dumps({"bans": listed}))
        return
    for gateway, address, left in rows:
        click.echo(f"{address}  for {left} more seconds, at {gateway}")
    if not rows:
        click.echo("No address is ignored.")


def print_lifted(gateways: list[str], address: str, *, as_json: bool) -> None:
    """Print which gateways read the address again."""
    if as_json:
        click.echo(json.dumps({"address": address, "gateways": gateways}))
    elif gateways:
        click.echo(f"{address} is read again at {', '.join(gateways)}.")
    else:
        click.echo(f"No gateway ignored {address}.")
