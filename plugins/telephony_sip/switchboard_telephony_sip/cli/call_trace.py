"""`switchboard sip trace`: fetch a call's messages from its gateway, and print them.

A ladder diagram has one column for the gateway, and one for each address at the other side.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import click
import msgspec
from switchboard.plugin_sdk import Installation, ProviderError

from switchboard_telephony_sip.commands import TraceCommand, TraceEntry, TraceResult
from switchboard_telephony_sip.gateways import (
    CallUnknown,
    Gateways,
    GatewayUnreachable,
    get_gateway_place,
    read_gateway_place,
)
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings

WIDTH: Final = 34
"""Columns between two lines."""
TIME_WIDTH: Final = 14
MAX_SUMMARY: Final = WIDTH - 7


async def fetch_trace(installation: Installation, call_id: UUID) -> tuple[str, TraceResult]:
    """Ask the gateway of a call for its messages, and return its address with them. Raises `click.ClickException`."""
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
    return await _ask_gateway(settings, call.carrier_call_id)


async def _ask_gateway(settings: SipSettings, carrier_call_id: str) -> tuple[str, TraceResult]:
    place = read_gateway_place(carrier_call_id)
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
    return address, result


def print_trace(call_id: UUID, gateway: str, trace: TraceResult, *, messages: bool, as_json: bool) -> None:
    """Print a trace as a ladder diagram, or as one JSON object."""
    if as_json:
        listed = [
            {**msgspec.to_builtins(each), "at": datetime.fromtimestamp(each.at, UTC).isoformat(timespec="milliseconds")}
            for each in trace.messages
        ]
        found = {"call_id": str(call_id), "gateway": gateway, "messages": listed}
        click.echo(json.dumps(found | {"omitted": trace.omitted}))
        return
    if not trace.messages:
        click.echo("The gateway has neither sent nor received a SIP message for this call.")
    for line in draw_ladder(trace.messages):
        click.echo(line)
    if trace.omitted:
        click.echo(f"{trace.omitted} messages in the middle were left out.")
    for each in trace.messages if messages else ():
        way = f"{each.local} -> {each.remote}" if each.direction == "out" else f"{each.remote} -> {each.local}"
        click.echo(f"\n--- {_write_time(each.at)} {each.transport} {way}\n{each.text.rstrip()}".replace("\r\n", "\n"))


def draw_ladder(messages: Sequence[TraceEntry]) -> list[str]:
    """Return the diagram's lines: times in UTC, the addresses above their lines, and an arrow for each message."""
    if not messages:
        return []
    remotes = list(dict.fromkeys(f"{each.transport} {each.remote}" for each in messages))
    local = next((each.local for each in messages if each.local), "")
    heads = [("gateway", local), *(("trunk", remote) for remote in remotes)]
    return [
        "Time (UTC)".ljust(TIME_WIDTH) + _draw_heads([name for name, _ in heads]),
        " " * TIME_WIDTH + _draw_heads([place for _, place in heads]),
        *(_draw_message(each, remotes.index(f"{each.transport} {each.remote}") + 1, len(remotes)) for each in messages),
    ]


def _draw_heads(heads: Sequence[str]) -> str:
    return "".join(head[: WIDTH - 1].ljust(WIDTH) for head in heads).rstrip()


def _draw_message(message: TraceEntry, column: int, columns: int) -> str:
    """Draw an arrow between the gateway and a column, over the lines between them."""
    summary = "".join(character if character.isprintable() else "?" for character in message.summary)
    if len(summary) > MAX_SUMMARY:
        summary = f"{summary[: MAX_SUMMARY - 1]}…"
    shaft = f"-- {summary} ".ljust(column * WIDTH - 2, "-")
    arrow = f"{shaft}>" if message.direction == "out" else f"<{shaft}"
    rest = "".join(" " * (WIDTH - 1) + "|" for _ in range(columns - column))
    return f"{_write_time(message.at).ljust(TIME_WIDTH)}|{arrow}|{rest}".rstrip()


def _write_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
