"""Text messages from alphanumeric senders, over each carrier that has them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.runtime import Runtime

from tests.carriers.lines import (
    Line,
    open_plivo_line,
    open_telnyx_line,
    open_twilio_line,
    wait_for_message_status,
)
from tests.carriers.plivo.server import PlivoServer
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.twilio.server import TwilioServer, new_sid
from tests.fixtures.app import Organizations

GERMAN, AMERICAN = "+493023125001", "+15550100001"
SENDERS: JsonValue = {"DE": "ACME GmbH"}


@pytest_asyncio.fixture(params=["twilio", "telnyx", "plivo"])
async def line(request: pytest.FixtureRequest, runtime: Runtime, organizations: Organizations) -> AsyncIterator[Line]:
    if request.param == "twilio":
        service = new_sid("MG")
        async with open_twilio_line(runtime, organizations, sender_ids=SENDERS, messaging_service_sid=service) as (
            line,
            _,
        ):
            yield line
    elif request.param == "telnyx":
        async with open_telnyx_line(runtime, organizations, sender_ids=SENDERS) as (line, _):
            yield line
    else:
        async with open_plivo_line(runtime, organizations, sender_ids=SENDERS) as (line, _):
            yield line


def list_senders(line: Line) -> list[str]:
    """Return the senders of the text messages that the carrier was asked to send."""
    match line.people:
        case TwilioServer() as twilio:
            return [dict(form)["From"] for _, path, form in twilio.requests if path.endswith("/Messages.json")]
        case TelnyxServer() as telnyx:
            return [str(body["from"]) for _, path, body in telnyx.requests if path.endswith("/messages")]
        case PlivoServer() as plivo:
            return [str(given["src"]) for _, path, given in plivo.requests if path.endswith("/Message/")]
    raise AssertionError


async def test_an_alphanumeric_sender_writes_where_it_may_and_the_number_answers(line: Line) -> None:
    live, number = line.live, line.live.number.removeprefix("+" if line.carrier == "plivo" else "")

    async def send_to(recipient: str) -> None:
        body = {"to_number": recipient, "from_number_id": live.number_id, "body": "Your bread is ready."}
        await wait_for_message_status(live, (await live.caller.post("/v1/sms", body)).json, "delivered")

    await send_to(GERMAN)
    await send_to(AMERICAN)
    assert list_senders(line) == ["ACME GmbH", number]
    await line.people.text(GERMAN, live.number, "Which bread?")
    await send_to(GERMAN)
    assert set(list_senders(line)[2:]) == {number}, "the contact could not answer an alphanumeric sender"
