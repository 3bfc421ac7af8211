"""`phone dial` and `phone text`: a simulated person calls or texts one of our numbers."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import click

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import (
    CallbackUrls,
    CallProgress,
    ProviderError,
    SimulatedCarrier,
    SpokenLine,
    TelephonyProvider,
)
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.schemas import TranscriptEntryOut
from switchboard.resources.calls.service import wait_until_settled
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.phone_numbers.queries import find_number_owner
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.queries import find_message_of_carrier, find_reply
from switchboard.runtime import Runtime

SETTLE_SECONDS = 15.0
ANSWER_SECONDS = 10.0
POLL_SECONDS = 0.1


class RealCarrier(Failure):
    """The number is with a carrier that cannot simulate people."""


@click.group()
def phone() -> None:
    """A simulated person with a telephone."""


@phone.command("dial")
@click.option("--from", "from_number", required=True, help="Phone number of the simulated person.")
@click.option("--to", "to_number", required=True, help="One of our phone numbers.")
@click.option(
    "--say",
    "texts",
    multiple=True,
    help="A line to say, or keys: [4711#]. The next one follows when the agent has stopped talking.",
)
@click.option(
    "--wav", "files", multiple=True, type=click.Path(path_type=Path), help="A recorded line, after those of --say."
)
@run_with_json
async def dial(
    from_number: str, to_number: str, texts: tuple[str, ...], files: tuple[Path, ...], as_json: bool
) -> None:
    """Call one of our numbers, say each line, and hang up after the last answer."""
    lines = [*(SpokenLine.from_text(text) for text in texts), *(SpokenLine(wav=path) for path in files)]
    async with (
        open_runtime() as runtime,
        use_simulated_carrier(runtime, to_number) as (carrier, callbacks, organization_id),
    ):
        simulated = await carrier.simulate_call(
            from_number=from_number, to_number=to_number, lines=lines, callbacks=callbacks, progress=_show_progress
        )
        if not simulated.answered:
            raise Failure(f"the call was not answered: {simulated.refused_reason}")
        call = await wait_for_settled_call(runtime.database, organization_id, simulated.carrier_call_id)
        async with runtime.database.read(organization_id) as session:
            transcript = [
                TranscriptEntryOut.model_validate(line) for line in await calls.get_transcript(session, call.id)
            ]
    if as_json:
        result = {
            "call_id": str(call.id),
            "duration_seconds": call.duration_seconds,
            "transcript": [entry.model_dump(mode="json") for entry in transcript],
            "first_reply_ms": simulated.first_reply_ms,
        }
        print_result(result, as_json=True)
        return
    for entry in transcript:
        click.echo(f"{entry.timestamp_ms / 1000:7.2f}  {entry.role:5}  {entry.content}")
    click.echo(
        f"call {call.id}: {call.duration_seconds} s, first reply after {simulated.first_reply_ms} ms, ended: "
        f"{call.ended_reason}"
    )


@phone.command("text")
@click.option("--from", "from_number", required=True, help="Phone number of the simulated person.")
@click.option("--to", "to_number", required=True, help="One of our phone numbers.")
@click.option("--body", default="", help="Body of the message.")
@click.option(
    "--media", "media_urls", multiple=True, help="Address of a file of the message: loopback:picture.png is a picture."
)
@run_with_json
async def text(from_number: str, to_number: str, body: str, media_urls: tuple[str, ...], as_json: bool) -> None:
    """Send a text message to one of our numbers, and show the reply within ten seconds (without --json)."""
    if not body and not media_urls:
        raise click.UsageError("Give --body, --media, or both.")
    async with (
        open_runtime() as runtime,
        use_simulated_carrier(runtime, to_number) as (carrier, callbacks, organization_id),
    ):
        carrier_text_id = await carrier.simulate_text_message(
            from_number=from_number, to_number=to_number, body=body, callbacks=callbacks, media_urls=media_urls
        )
        async with runtime.database.read(organization_id) as session:
            message = await find_message_of_carrier(session, carrier_text_id)
        if message is None:
            raise Failure("the platform has not saved the message; look at its log")
        if as_json:
            print_result({"message_id": str(message.id)}, as_json=True)
            return
        reply = await _wait_for_reply(runtime.database, message)
    click.echo(f"message {message.id}: {reply.body.value if reply else 'no answer within ten seconds'}")


@asynccontextmanager
async def use_simulated_carrier(
    runtime: Runtime, to_number: str
) -> AsyncIterator[tuple[SimulatedCarrier, CallbackUrls, UUID]]:
    """Return the carrier of one of our numbers if it can simulate people. Raises `Failure`, also for the carrier's
    errors within the block.
    """
    async with runtime.database.system() as session:
        number = await find_number_owner(session, to_number)
    if number is None:
        raise Failure(f"{to_number} is not a number of any organization here")
    try:
        async with runtime.providers.use(number.organization_id, TelephonyProvider, number.carrier) as carrier:
            if not isinstance(carrier, SimulatedCarrier):
                raise RealCarrier(f"{number.carrier} is a real carrier: call {to_number} with a telephone")
            callbacks = build_callback_urls(runtime.settings.base_url, number.organization_id, number.carrier)
            yield carrier, callbacks, number.organization_id
    except ProviderError as error:
        raise Failure(error.message) from error


async def wait_for_settled_call(database: Database, organization_id: UUID, carrier_call_id: str) -> Call:
    """Wait until the call has been saved to its end. Raises `Failure` on a timeout."""
    try:
        return await wait_until_settled(database, organization_id, carrier_call_id, seconds=SETTLE_SECONDS)
    except TimeoutError:
        raise Failure("the platform has not saved the call; look at its log") from None


async def _wait_for_reply(database: Database, message: SmsMessage) -> SmsMessage | None:
    """Return the first message that is sent back; None if none comes in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                async with database.read(message.organization_id) as session:
                    found = await find_reply(session, message)
                if found is not None:
                    return found
                await asyncio.sleep(POLL_SECONDS)
    return None


def _show_progress(progress: CallProgress) -> None:
    if sys.stderr.isatty():
        click.echo(f"{progress.stage.replace('_', ' ')} {progress.line or ''}".rstrip(), err=True)
