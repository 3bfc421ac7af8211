"""Sending without a worker: the steps of a message, and crashes between them."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlmodel import col, select, update
from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import UNREADABLE, Content, open_content
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import (
    OutboundTextMessage,
    ProviderError,
    TextEncoding,
    TextMessageReceived,
    TextMessageStatus,
)
from switchboard.plugin_sdk.telephony import TelephonyCapabilities
from switchboard.resources.identity.policy import Encryption, Policy, Prices
from switchboard.resources.sms import inbound, sender
from switchboard.resources.sms.jobs import send_text
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.sender import MessageSender
from switchboard.resources.sms.states import LOOKS_AT_AGES
from switchboard.runtime import Runtime
from switchboard_offline.loopback import LoopbackTelephony

from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.command_line import Operator
from tests.fixtures.json_access import Json, at, text_at

CONTACT = "+15550100001"


class Carrier:
    """Counts the requests to the loopback carrier, and returns scripted results."""

    def __init__(self) -> None:
        self.orders: list[OutboundTextMessage] = []
        self.answer: str | ProviderError = "lt-1"

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        self.orders.append(order)
        await asyncio.sleep(0)
        if isinstance(self.answer, ProviderError):
            raise self.answer
        return self.answer


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Carrier:
    carrier = Carrier()

    async def send_text_message(_: LoopbackTelephony, order: OutboundTextMessage) -> str:
        return await carrier.send_text_message(order)

    monkeypatch.setattr(LoopbackTelephony, "send_text_message", send_text_message)
    return carrier


async def create_queued_message(caller: Caller, to_number: str = CONTACT, body: str = "Hello") -> SmsMessage:
    """Create an accepted message; no worker runs."""
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    accepted = await caller.post("/v1/sms", {"to_number": to_number, "from_number_id": number, "body": body})
    assert accepted.status == 201, accepted.body
    return read_accepted(caller, accepted.json)


def read_accepted(caller: Caller, accepted: Json) -> SmsMessage:
    contents = {name: Content(accepted[name]) for name in ("body", "media_urls")}
    fields = {**accepted, **contents, "organization_id": caller.organization_id, "carrier": "loopback"}
    return SmsMessage.model_validate(fields)


def build_sender(runtime: Runtime) -> MessageSender:
    return runtime.call(MessageSender)


async def get_message(runtime: Runtime, message: SmsMessage) -> SmsMessage:
    async with runtime.database.write(message.organization_id) as session:
        found = await session.get_one(SmsMessage, message.id)
        await open_content(session, found)
        return found


async def report_status(runtime: Runtime, message: SmsMessage, status: str, *, named: bool = True) -> None:
    error = "switched off" if status == "undelivered" else None
    reported = TextMessageStatus("lt-1", status, error)  # type: ignore[arg-type]
    await sender.apply_message_event(
        runtime.database, message.organization_id, "loopback", reported, message_id=message.id if named else None
    )


async def list_event_names(caller: Caller, runtime: Runtime) -> list[str]:
    async with runtime.database.write(caller.organization_id) as session:
        return list((await session.exec(select(Event.name).order_by(col(Event.created_at)))).all())


async def test_ten_workers_send_a_message_once(runtime: Runtime, caller: Caller, carrier: Carrier) -> None:
    message = await create_queued_message(caller)
    await asyncio.gather(
        *(build_sender(runtime).send_due_message(caller.organization_id, message.id) for _ in range(10))
    )
    assert [order.reference for order in carrier.orders] == [str(message.id)]
    message_after = await get_message(runtime, message)
    assert (message_after.status, message_after.carrier_text_id) == ("sent", "lt-1")
    assert await list_event_names(caller, runtime) == ["sms.sent"]


async def test_a_message_is_charged_by_segment_once_the_carrier_accepts_it(
    organizations: Organizations, runtime: Runtime, carrier: Carrier
) -> None:
    caller = await organizations.create(policy=Policy(prices=Prices(text_segment=0.008)))
    message = await create_queued_message(caller, body="x" * 161)
    assert (message.segments, float(message.cost)) == (2, 0.0)
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    await report_status(runtime, message, "delivered")
    assert float((await get_message(runtime, message)).cost) == 0.016


async def test_the_carriers_own_segments_and_cost_replace_the_estimate(
    organizations: Organizations, runtime: Runtime, carrier: Carrier
) -> None:
    caller = await organizations.create(policy=Policy(prices=Prices(text_segment=0.008)))

    async def report(segments: int | None, cost: float | None, *, status: str = "sent") -> tuple[int, float, object]:
        reported = TextMessageStatus("lt-1", status, segments=segments, cost=cost)  # type: ignore[arg-type]
        await sender.apply_message_event(
            runtime.database, message.organization_id, "loopback", reported, message_id=message.id
        )
        known = await get_message(runtime, message)
        return known.segments, float(known.cost), (await caller.get("/v1/billing/balance")).json["balance"]

    message = await create_queued_message(caller)
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    assert await report(2, None) == (2, 0.016, -0.016)
    assert await report(2, 0.0051) == (2, 0.0051, -0.0051)
    assert await report(2, 0.0051, status="delivered") == (2, 0.0051, -0.0051)
    assert await report(None, None, status="delivered") == (2, 0.0051, -0.0051)


async def test_a_free_message_is_charged_what_its_carrier_reports(
    runtime: Runtime, caller: Caller, carrier: Carrier
) -> None:
    message = await create_queued_message(caller)
    reported = TextMessageStatus("lt-1", "sent", segments=1, cost=0.0051)
    for _ in range(2):
        await sender.apply_message_event(
            runtime.database, message.organization_id, "loopback", reported, message_id=message.id
        )
    assert (await caller.get("/v1/billing/balance")).json["balance"] == -0.0051


async def test_a_message_that_failed_costs_nothing_whatever_its_carrier_reports(
    runtime: Runtime, caller: Caller, carrier: Carrier
) -> None:
    message = await create_queued_message(caller)
    reported = TextMessageStatus("lt-1", "failed", segments=1, cost=0.0051)
    await sender.apply_message_event(
        runtime.database, message.organization_id, "loopback", reported, message_id=message.id
    )
    assert (await caller.get("/v1/billing/balance")).json["balance"] == 0


async def test_a_message_that_the_carrier_would_refuse_as_too_long_is_refused_at_once(
    runtime: Runtime, caller: Caller, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoopbackTelephony, "text_encoding", TextEncoding(max_segments=2))
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    order = {"to_number": CONTACT, "from_number_id": number, "body": "ж" * 135}
    refused = await caller.post("/v1/sms", order)
    assert (refused.status, at(refused.json, "errors", 0, "field")) == (422, "body")
    assert "has 3 segments, and loopback sends at most 2" in text_at(refused.json, "detail")
    assert (await caller.post("/v1/sms", {**order, "body": "ж" * 134})).status == 201


async def test_a_refused_message_fails_with_the_carriers_words(
    runtime: Runtime, caller: Caller, carrier: Carrier
) -> None:
    message = await create_queued_message(caller)
    carrier.answer = ProviderError("not a mobile number", retryable=False)
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    failed = await get_message(runtime, message)
    assert (failed.status, failed.error_message, float(failed.cost)) == ("failed", "not a mobile number", 0.0)
    assert await list_event_names(caller, runtime) == []


async def test_a_carrier_without_text_messages_is_not_asked(
    runtime: Runtime, caller: Caller, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await create_queued_message(caller)
    monkeypatch.setattr(LoopbackTelephony, "capabilities", TelephonyCapabilities(text_messages=False))
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    assert (await get_message(runtime, message)).status == "failed"
    assert carrier.orders == []


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (["delivered"], "delivered"),
        (["sent", "delivered"], "delivered"),
        (["delivered", "sent"], "delivered"),
        (["delivered"] * 3, "delivered"),
        (["undelivered", "delivered"], "undelivered"),
        (["delivered", "failed"], "delivered"),
        (["sending"], "sent"),
        (["sent", "failed"], "failed"),
    ],
)
async def test_callbacks_only_advance_the_status(
    runtime: Runtime, caller: Caller, carrier: Carrier, reported: list[str], expected: str
) -> None:
    message = await create_queued_message(caller)
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    for status in reported:
        await report_status(runtime, message, status, named=False)
    assert (await get_message(runtime, message)).status == expected
    assert await list_event_names(caller, runtime) == ["sms.sent"]


async def test_a_callback_may_precede_the_carriers_response(runtime: Runtime, caller: Caller, carrier: Carrier) -> None:
    message = await create_queued_message(caller)
    await report_status(runtime, message, "undelivered")
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    final = await get_message(runtime, message)
    assert (final.status, final.error_message, final.carrier_text_id) == ("undelivered", "switched off", "lt-1")
    assert await list_event_names(caller, runtime) == ["sms.sent"]


async def test_a_crash_between_claim_and_response_never_sends_twice(
    runtime: Runtime, caller: Caller, carrier: Carrier
) -> None:
    message = await create_queued_message(caller)
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(SmsMessage).values(status="sending", watch_at=now() - timedelta(seconds=1)))
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    failed = await get_message(runtime, message)
    assert (failed.status, failed.error_message) == ("failed", sender.UNKNOWN_FATE)
    assert carrier.orders == []
    await report_status(runtime, message, "delivered")  # the carrier had accepted it after all
    delivered = await get_message(runtime, message)
    assert (delivered.status, delivered.error_message) == ("delivered", None)


async def test_the_carrier_is_asked_for_a_message_without_a_report(
    runtime: Runtime, caller: Caller, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The carrier's process has died after it accepted the message; the loopback carrier says that it is lost."""
    message = await create_queued_message(caller)
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    asked: list[str] = []
    answers: list[TextMessageStatus | ProviderError | None] = [
        ProviderError("away"),
        None,
        TextMessageStatus("lt-1", "undelivered", "switched off"),
    ]

    async def find_text_status(_: LoopbackTelephony, carrier_text_id: str) -> TextMessageStatus | None:
        asked.append(carrier_text_id)
        if isinstance(answer := answers[len(asked) - 1], ProviderError):
            raise answer
        return answer

    monkeypatch.setattr(LoopbackTelephony, "find_text_status", find_text_status)

    async def recover() -> None:
        await runtime.call(send_text, organization_id=caller.organization_id, message_id=message.id)

    await recover()
    assert asked == [], "it is not due yet"
    for age, later in pairwise(LOOKS_AT_AGES[: len(answers) + 1]):
        begun = now() - age
        async with runtime.database.write(caller.organization_id) as session:
            await session.exec(update(SmsMessage).values(created_at=begun, watch_at=begun))
        await recover()
        sent = await get_message(runtime, message)
        assert (sent.status, sent.watch_at) in {("sent", begun + later), ("undelivered", None)}
    lost = await get_message(runtime, message)
    assert asked == ["lt-1"] * len(answers)
    assert (lost.status, lost.error_message) == ("undelivered", "switched off")


async def test_an_opt_out_before_sending_fails_the_message(runtime: Runtime, caller: Caller, carrier: Carrier) -> None:
    message = await create_queued_message(caller)
    await inbound.receive_message(
        runtime.database,
        caller.organization_id,
        "loopback",
        TextMessageReceived("in-1", CONTACT, message.from_number, "STOP"),
        base_url="http://localhost",
    )
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    failed = await get_message(runtime, message)
    assert failed.status == "failed"
    assert "opted out" in str(failed.error_message)
    assert carrier.orders == []


async def test_a_redacted_message_is_sent_in_full_and_kept_redacted(
    runtime: Runtime, caller: Caller, carrier: Carrier
) -> None:
    agent = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": ["card_number"]}})
    bought = {"phone_number": fresh_number(), "inbound_agent_id": agent.json["id"]}
    number = (await caller.post("/v1/phone-numbers", bought)).json["id"]
    text = "Your card 4111 1111 1111 1111 was charged."
    accepted = (await caller.post("/v1/sms", {"to_number": CONTACT, "from_number_id": number, "body": text})).json
    kept = "Your card [card number] was charged."
    assert (accepted["body"], accepted["segments"]) == (kept, 1)
    message = read_accepted(caller, accepted)
    assert (await get_message(runtime, message)).unsent_body.value == text
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    assert [order.body for order in carrier.orders] == [text]
    sent = await get_message(runtime, message)
    assert (sent.status, sent.body.value, sent.unsent_body.value) == ("sent", kept, None)


async def test_a_message_whose_key_was_destroyed_is_not_sent(
    runtime: Runtime, organizations: Organizations, carrier: Carrier, operator: Operator
) -> None:
    caller = await organizations.create(policy=Policy(encryption=Encryption(texts=True)))
    message = await create_queued_message(caller)
    operator.ask("keys", "shred", "--org", str(caller.organization_id), "--yes")
    await build_sender(runtime).send_due_message(caller.organization_id, message.id)
    assert carrier.orders == []
    assert (await get_message(runtime, message)).error_message == f"Not sent: {UNREADABLE}"
