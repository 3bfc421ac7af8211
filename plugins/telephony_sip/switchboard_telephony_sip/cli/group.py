"""`switchboard sip`: the group.

Every process of the platform loads this module, so each command imports what it needs when it runs.
"""

from uuid import UUID

import click
from switchboard.plugin_sdk import InstallationAccess

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def sip() -> None:
    """Calls of SIP gateways, as the operator sees them."""


@sip.command()
@click.argument("call_id", type=click.UUID)
@click.option("-v", "--messages", is_flag=True, help="Print the whole messages, too.")
@as_json
@click.pass_obj
def trace(access: InstallationAccess, call_id: UUID, messages: bool, as_json: bool) -> None:
    """Draw the SIP messages between gateway and trunk of a call, live or lately ended.

    CALL_ID is the platform's id of the call. Secrets, pressed keys, and phone numbers are masked.
    """
    from switchboard_telephony_sip.cli.call_trace import fetch_trace, print_trace

    gateway, found = access.run(lambda installation: fetch_trace(installation, call_id))
    print_trace(call_id, gateway, found, messages=messages, as_json=as_json)


@sip.command()
@as_json
@click.pass_obj
def bans(access: InstallationAccess, as_json: bool) -> None:
    """List the addresses that gateways ignore, because they belong to no trunk and sent refused messages."""
    from switchboard_telephony_sip.cli.bans import list_bans, print_bans

    print_bans(access.run(list_bans), as_json=as_json)


@sip.command()
@click.argument("address")
@as_json
@click.pass_obj
def unban(access: InstallationAccess, address: str, as_json: bool) -> None:
    """Have every gateway read an address again."""
    from switchboard_telephony_sip.cli.bans import lift_ban, print_lifted

    print_lifted(access.run(lambda installation: lift_ban(installation, address)), address, as_json=as_json)
