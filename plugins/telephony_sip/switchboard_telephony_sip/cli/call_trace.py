"""`switchboard sip trace`: fetch a call's messages from its gateway, and print them."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import click
import msgspec
from switchboard.plugin_sdk import Installation, ProviderError

from switchboard_telephony_sip.cli.ladder import draw_ladder
from switchboard_telephony_sip.commands import TraceCommand, TraceResult
from switchboard_telephony_sip.gateways import (
    CALL_ID,
    CallUnknown,
    Gateways,
    GatewayUnreachable,
    get_gateway_place,
)
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings


@dataclass(frozen=True, slots=True)
class FetchedTrace:
    """Messages of a call, and the gateway that has them."""

    call_id: UUID
    gateway: str
    result: TraceResult


async def fetch_trace(installation: Installation, call_id: UUID) -> FetchedTrace:
    """Ask the gateway of a call for its messages. Raises `click.ClickException`."""
    call = await installation.find_call(call_id)
    if call is None:
        raise click.ClickException(f"there is no call {call_id}")
    if call.carrier != SipTelephony.name:
        raise click.ClickException(
            f"the call went over {call.carrier}: only calls over SIP trunks have SIP messages at a gateway"
        )
    if call.carrier_call_id is None:
        raise click.ClickException("no gateway has taken the call, so there are no SIP messages")
    accounts = await installation.list_accounts(SipTelephony)
    settings = next((one.settings for one in accounts if one.organization_id == call.organization_id), None)
    if not isinstance(settings, SipSettings):
        raise click.ClickException("the call's organization has no SIP trunks any more")
    return await _ask_gateway(settings, call_id, call.carrier_call_id)


async def _ask_gateway(settings: SipSettings, call_id: UUID, carrier_call_id: str) -> FetchedTrace:
    shape = CALL_ID.fullmatch(carrier_call_id)
    place = shape[1] if shape else ""
    address = next((each for each in settings.gateways if get_gateway_place(each) == place), None)
    if address is None:
        raise click.ClickException(f"the call's gateway {place} is not among the organization's gateways any more")
    gateways = Gateways([address], settings.signing_secret.get_secret_value())
    try:
        result = (await gateways.command(address, TraceCommand(carrier_call_id))).trace
    except CallUnknown:
        result = None
    except GatewayUnreachable as error:
        raise click.ClickException(f"the call's gateway {address} cannot be reached: {error.message}") from error
    except ProviderError as error:
        raise click.ClickException(f"the call's gateway {address} refused: {error.message}") from error
    finally:
        await gateways.close()
    if result is None:
        raise click.ClickException(
            f"the gateway {address} does not keep the call's messages any more: it keeps those of ended calls for "
            "30 minutes, in at most 16 MB, and until it stops"
        )
    return FetchedTrace(call_id, address, result)


def print_trace(trace: FetchedTrace, *, messages: bool, as_json: bool) -> None:
    """Print a trace as a ladder diagram, or as one JSON object."""
    if as_json:
        listed = [
            {**msgspec.to_builtins(each), "at": datetime.fromtimestamp(each.at, UTC).isoformat(timespec="milliseconds")}
            for each in trace.result.messages
        ]
        found = {"call_id": str(trace.call_id), "gateway": trace.gateway, "messages": listed}
        click.echo(json.dumps(found | {"omitted": trace.result.omitted}))
        return
    if not trace.result.messages:
        click.echo("The gateway has neither sent nor received a SIP message for this call.")
    for line in draw_ladder(trace.result.messages):
        click.echo(line)
    if trace.result.omitted:
        click.echo(f"{trace.result.omitted} messages in the middle were left out.")
    for each in trace.result.messages if messages else ():
        way = f"{each.local} -> {each.remote}" if each.direction == "out" else f"{each.remote} -> {each.local}"
        moment = datetime.fromtimestamp(each.at, UTC).strftime("%H:%M:%S.%f")[:-3]
        click.echo(f"\n--- {moment} {each.transport} {way}\n{each.text.rstrip()}".replace("\r\n", "\n"))
