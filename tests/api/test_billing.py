"""The ledger through the API: costs, refusals, and a balance that equals the sum of its entries."""

import asyncio
import random
from datetime import timedelta
from decimal import Decimal
from typing import Literal
from uuid import uuid4

import pytest
from sqlalchemy import func
from sqlmodel import select
from switchboard.foundation.database import now
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import Account, LedgerEntry, LedgerHold
from switchboard.resources.calls.live import heartbeat
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy, Prices, RateLimit, RateLimits
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.jobs import charge_rent
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at
from tests.fixtures.work import do_due_work

FAST = RateLimits(write=RateLimit(per_second=1000, burst=1000))
PREPAID = Policy(
    billing_mode="prepaid",
    prices=Prices(call_minute=1, text_segment=1, number_month=2),
    max_concurrent_calls=1000,
    rate_limits=FAST,
)
KINDS: tuple[Literal["call", "text"], ...] = ("call", "text")


async def credit(runtime: Runtime, caller: Caller, amount: float) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        await ledger.credit_account(session, Decimal(str(amount)))


async def get_balance(caller: Caller) -> object:
    return (await caller.get("/v1/billing/balance")).json["balance"]


async def create_prepaid(
    runtime: Runtime, organizations: Organizations, *, credited: int
) -> tuple[Caller, dict[str, str]]:
    """Create a prepaid organization with an agent and a number, and return the body of a call."""
    caller = await organizations.create(policy=PREPAID)
    await credit(runtime, caller, credited + 2)
    async with runtime.database.write(caller.organization_id) as session:
        agent = await runtime.call(AgentPublisher).create_agent(session, AgentCreate(name="Agent"), None)
    buyer = runtime.call(purchases.NumberBuyer)
    number = await buyer.buy_number(
        caller.organization_id, PhoneNumberBuy(phone_number=fresh_number(), inbound_agent_id=str(agent.id))
    )
    assert await get_balance(caller) == credited
    return caller, {"agent_id": str(agent.id), "from_number_id": str(number.id)}


async def become_prepaid(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.system() as session:
        organization = await session.get_one(Organization, caller.organization_id)
        organization.policy = PREPAID


async def test_the_balance_starts_at_zero(caller: Caller) -> None:
    response = await caller.get("/v1/billing/balance")
    assert response.status == 200
    assert response.json.pop("updated_at")
    assert response.json == {"balance": 0, "currency": "USD", "billing_mode": "postpaid"}
    assert (await caller.get("/v1/billing/balance?days=3")).status == 422


async def test_billing_requires_its_scope(organizations: Organizations) -> None:
    assert (await (await organizations.create(scopes=["calls:read"])).get("/v1/billing/balance")).status == 403


async def test_calls_messages_and_numbers_are_402_without_credit(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller, body = await create_prepaid(runtime, organizations, credited=0)
    text = {"from_number_id": body["from_number_id"], "to_number": "+15550100001", "body": "Hello"}
    for path, request in [
        ("/v1/calls", {**body, "to_number": "+15550100001"}),
        ("/v1/sms", text),
        ("/v1/phone-numbers", {"phone_number": fresh_number()}),
    ]:
        response = await caller.post(path, request)
        assert (response.status, response.json["code"]) == (402, "insufficient_balance")
    assert (await caller.get("/v1/calls")).json["total"] == 0
    assert (await caller.get("/v1/sms/conversations")).json["total"] == 0
    assert await get_balance(caller) == 0


async def test_concurrent_calls_cannot_overspend_the_balance(runtime: Runtime, organizations: Organizations) -> None:
    caller, body = await create_prepaid(runtime, organizations, credited=10)
    responses = await asyncio.gather(
        *(caller.post("/v1/calls", {**body, "to_number": "+15550100001"}) for _ in range(50))
    )
    assert sorted(response.status for response in responses) == [201] * 10 + [402] * 40


async def test_a_postpaid_balance_may_become_negative(organizations: Organizations) -> None:
    caller = await organizations.create(policy=PREPAID.model_copy(update={"billing_mode": "postpaid"}))
    assert (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).status == 201
    assert await get_balance(caller) == -2


async def test_a_finished_call_is_charged_and_releases_its_hold(live: LivePlatform, runtime: Runtime) -> None:
    caller = live.caller
    await become_prepaid(runtime, caller)
    await credit(runtime, caller, 3)
    call = await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    assert call["cost_total"] == 1
    assert await get_balance(caller) == 2
    refused = await live.wait_for_end((await live.place_call("+15550100024"))["id"])
    assert (refused["status"], refused["cost_total"]) == ("failed", 0)
    assert await get_balance(caller) == 2
    async with runtime.database.write(caller.organization_id) as session:
        assert not (await session.exec(select(LedgerHold))).all()


async def test_a_running_call_ends_when_its_next_minute_cannot_be_paid(
    live: LivePlatform, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes are half a second long here, and there is money for two."""
    monkeypatch.setattr(heartbeat, "MINUTE", timedelta(seconds=0.5))
    monkeypatch.setattr(heartbeat, "LEAD_TIME", timedelta())
    await become_prepaid(runtime, live.caller)
    await credit(runtime, live.caller, 2.5)
    call = await live.wait_for_end((await live.place_call("+15550100070"))["id"])
    assert (call["status"], call["ended_reason"]) == ("completed", "insufficient_balance")


async def test_an_inbound_call_that_cannot_be_paid_is_refused(live: LivePlatform, runtime: Runtime) -> None:
    await become_prepaid(runtime, live.caller)
    assert not (await live.simulate_call("Hello")).answered
    call = at((await live.caller.get("/v1/calls")).json, "items", 0)
    assert (at(call, "status"), at(call, "ended_reason")) == ("failed", "insufficient_balance")


async def test_a_message_is_charged_once_the_carrier_accepts_it(live: LivePlatform, runtime: Runtime) -> None:
    caller = live.caller
    await become_prepaid(runtime, caller)
    await credit(runtime, caller, 1.5)
    body = {"from_number_id": live.number_id, "to_number": "+15550100001", "body": "Hello"}
    assert (await caller.post("/v1/sms", body)).status == 201
    await eventually(lambda: get_balance(caller), lambda balance: balance == 0.5)
    assert (await caller.post("/v1/sms", body)).status == 402


async def test_a_number_is_charged_once_a_month(runtime: Runtime, organizations: Organizations) -> None:
    caller, _ = await create_prepaid(runtime, organizations, credited=0)
    async with runtime.database.write(caller.organization_id) as session:
        number = (await session.exec(select(PhoneNumber))).one()
        number.created_at -= timedelta(days=65)
        number.billed_until = number.created_at + timedelta(days=31)
    await asyncio.gather(do_due_work(runtime, charge_rent), do_due_work(runtime, charge_rent))
    charged = await get_balance(caller)
    assert charged == -4
    await do_due_work(runtime, charge_rent)
    assert await get_balance(caller) == charged
    async with runtime.database.write(caller.organization_id) as session:
        due = (await session.exec(select(PhoneNumber.billed_until))).one()
    assert due is not None
    assert due > now()


async def test_the_balance_equals_the_sum_of_its_entries_under_concurrency(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await organizations.create(policy=PREPAID)
    references = [uuid4() for _ in range(20)]

    async def act(number: int) -> None:
        dice = random.Random(number)
        amount = Decimal(dice.randrange(1, 500)) / 100
        async with runtime.database.write(caller.organization_id) as session:
            if dice.random() < 0.3:
                await ledger.credit_account(session, amount)
            elif dice.random() < 0.5:
                await ledger.hold_funds(session, dice.choice(references), amount)
            else:
                await ledger.settle_hold(session, dice.choice(KINDS), dice.choice(references), amount)

    results = await asyncio.gather(*(act(number) for number in range(200)), return_exceptions=True)
    assert all(result is None or isinstance(result, InsufficientBalance) for result in results)
    async with runtime.database.write(caller.organization_id) as session:
        account = (await session.exec(select(Account))).one()
        assert account.balance == (await session.exec(select(func.sum(LedgerEntry.amount)))).one()
