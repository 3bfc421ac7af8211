"""Counters that limits compare: they have what counting the calls, messages, costs, holds, and conversations would
give, whatever happens to those.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from sqlmodel import delete, select
from switchboard.apps.worker.jobs import compact_limit_counters
from switchboard.foundation.database import TenantTable, WriteSession, new_id, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.resources.agents.models import Agent
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerEntry, LedgerHold
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.destinations import queries
from switchboard.resources.destinations.models import LimitCounter, LimitCounterChange
from switchboard.resources.destinations.service import read_limit_counts
from switchboard.resources.identity.policy import OutboundLimits, Policy
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.widgets.models import Widget, WidgetSession
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.virtual_clock import CLOCK

LIMITS = OutboundLimits(calls_per_hour=1000, minutes_per_hour=10**6, texts_per_hour=1000, spend_per_hour=10**6)
LIMITED = Policy(max_concurrent_calls=1000, outbound_limits=LIMITS, billing_mode="prepaid")
OPEN = ("queued", "ringing", "in-progress")
ANNOUNCED_WITHIN = timedelta(minutes=1)
STEPS, MINUTE, DAY = 150, 60, 24 * 60 * 60


@dataclass
class Scene:
    """An organization to which things happen at random. `kept` are the ids of its calls, messages, and sessions."""

    runtime: Runtime
    caller: Caller
    random: Random
    widget_id: Any = field(default_factory=new_id)
    conversation_id: Any = field(default_factory=new_id)
    references: list[Any] = field(default_factory=lambda: [new_id() for _ in range(3)])
    kept: dict[type[TenantTable], list[Any]] = field(
        default_factory=lambda: dict[type[TenantTable], list[Any]]({Call: [], SmsMessage: [], WidgetSession: []})
    )

    async def prepare(self) -> None:
        """Add what calls, messages, and sessions refer to, and money."""
        ours: dict[str, Any] = {"organization_id": self.caller.organization_id}
        agent = Agent(id=new_id(), name="Agent", **ours)
        number = PhoneNumber(
            id=new_id(), phone_number=f"+1{new_id().int % 10**10:010}", friendly_name="", carrier="loopback", **ours
        )
        widget = Widget(id=self.widget_id, agent_id=agent.id, name="Widget", public_key=str(self.widget_id), **ours)
        conversation = SmsConversation(
            id=self.conversation_id, phone_number_id=number.id, contact_number="+15550100009", **ours
        )
        async with self.runtime.database.write(self.caller.organization_id) as session:
            session.add_all([agent, number])
            await session.flush()
            session.add_all([widget, conversation])
            await ledger.credit_account(session, Decimal(10**6))

    async def act(self) -> None:
        """Let time pass, and something happen."""
        actions: list[Callable[[], Any]] = [self.call, self.call, self.change_call, self.change_call]
        actions += [self.text, self.delete, self.hold, self.settle, self.visit, self.announce]
        await self.random.choice(actions)()

    async def call(self) -> None:
        """Add a call that began a while ago, in one of its states."""
        created_at = now() - timedelta(minutes=self.random.choice((0, 0, 30, 58, 70)), seconds=self.random.random())
        status = self.random.choice((*OPEN, "completed"))
        fields: dict[str, Any] = {
            "direction": self.random.choice(("inbound", "outbound")),
            "carrier": self.random.choice(("loopback", "loopback", CHAT)),
            "status": status,
            "ended_at": now() if status == "completed" else None,
            "started_at": created_at if status in ("completed", "in-progress") else None,
            "widget_id": self.random.choice((None, self.widget_id)),
            "cost_total": Decimal(self.random.randrange(5)),
        }
        self.kept[Call].append((await add_call(self.runtime, self.caller, created_at, **fields)).id)

    async def change_call(self) -> None:
        """Start, end, or transfer a call, or add to its cost."""
        action = self.random.choice(("start", "end", "end", "transfer", "cost"))
        async with self.runtime.database.write(self.caller.organization_id) as session:
            call = await session.lock(Call, self.choose(Call))
            if call is None:
                return
            if action == "end":
                await finish_call(session, call, "completed")
            elif action == "transfer":
                call.transferred_to = self.random.choice(("+15550100009", "client:person"))
            elif action == "cost":
                call.cost_total += self.random.randrange(5)
            elif call.status in ("queued", "ringing"):
                call.status, call.started_at = "in-progress", now()

    async def text(self) -> None:
        """Add a text message."""
        message = SmsMessage(
            id=new_id(),
            organization_id=self.caller.organization_id,
            conversation_id=self.conversation_id,
            created_at=now() - timedelta(minutes=self.random.choice((0, 59, 62))),
            direction=self.random.choice(("inbound", "outbound")),
            from_number="+15550100001",
            to_number="+15550100002",
            body=Content("Hello"),
            status="received",
            author="contact",
            segments=1,
            carrier="loopback",
        )
        async with self.runtime.database.write(self.caller.organization_id) as session:
            await seal_content(session, message)
            session.add(message)
        self.kept[SmsMessage].append(message.id)

    async def delete(self) -> None:
        """Delete a call, a message, or a session, as retention and erasure do."""
        table = self.random.choice(list(self.kept))
        async with self.runtime.database.write(self.caller.organization_id) as session:
            if (row := await session.lock(table, self.choose(table))) is not None:
                await session.delete(row)

    async def hold(self) -> None:
        """Hold money for something in progress."""
        async with self.runtime.database.write(self.caller.organization_id) as session:
            await ledger.hold_funds(session, self.random.choice(self.references), Decimal(self.random.randrange(9)))

    async def settle(self) -> None:
        """Charge what money was held for; nothing the second time."""
        place = self.random.randrange(len(self.references))
        async with self.runtime.database.write(self.caller.organization_id) as session:
            await ledger.settle_hold(session, "text", self.references[place], Decimal(self.random.randrange(9)))
        if self.random.random() < 0.5:
            self.references[place] = new_id()

    async def visit(self) -> None:
        """Add a session whose call is not announced yet."""
        visit = WidgetSession(
            id=new_id(),
            organization_id=self.caller.organization_id,
            widget_id=self.widget_id,
            created_at=now() - timedelta(seconds=self.random.choice((0, 58, 62))),
        )
        async with self.runtime.database.write(self.caller.organization_id) as session:
            session.add(visit)
        self.kept[WidgetSession].append(visit.id)

    async def announce(self) -> None:
        """Connect a session with its call."""
        async with self.runtime.database.write(self.caller.organization_id) as session:
            call = await session.lock(Call, self.choose(Call))
            visit = await session.lock(WidgetSession, self.choose(WidgetSession))
            if call is not None and visit is not None and visit.call_id is None and call.widget_id is None:
                visit.call_id, call.widget_id = call.id, self.widget_id

    def choose(self, table: type[TenantTable]) -> Any:
        """Choose one of the rows of a table."""
        return self.random.choice(self.kept[table] or [new_id()])

    async def require_equal(self) -> None:
        """Compare what limits compare to the rows."""
        async with self.runtime.database.write(self.caller.organization_id) as session:
            counts = await read_limit_counts(session)
            found = {
                "running": counts.running,
                "held": counts.held,
                **{str(name): n for name, n in counts.used.items()},
            }
            assert await count_rows(session) == found
            usage = await queries.read_counts_of_widget(session, self.widget_id, announced_within=ANNOUNCED_WITHIN)
            for name, expected in (await self.count_conversations(session)).items():
                assert expected == getattr(usage, name), name

    async def count_conversations(self, session: WriteSession) -> dict[str, object]:
        """Count the conversations of the widget from their rows."""
        since = (now() - timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
        ours = [call for call in await list_rows(session, Call) if call.widget_id == self.widget_id]
        ours = [call for call in ours if call.ended_at is None or call.ended_at >= since]
        unannounced = [each.created_at for each in await list_rows(session, WidgetSession) if each.call_id is None]
        lasting = [call for call in ours if call.ended_at is None]
        voices = [call for call in lasting if call.carrier != CHAT]
        recent = (now() - ANNOUNCED_WITHIN).replace(microsecond=0)
        return {
            "conversations": len(ours) + sum(moment.replace(minute=0, second=0) >= since for moment in unannounced),
            "spent": sum(call.cost_total for call in ours),
            "lasting": len(lasting) + sum(moment >= recent for moment in unannounced),
            "talking": len(voices),
            "talked": approximate(sum(count_minutes(call.started_at or call.created_at, now()) for call in voices)),
        }


async def count_rows(session: WriteSession) -> dict[str, object]:
    """Count what the limits of an organization compare, from the rows."""
    since = (now() - timedelta(hours=1)).replace(second=0, microsecond=0)
    calls, messages = await list_rows(session, Call), await list_rows(session, SmsMessage)
    outbound = [call for call in calls if call.direction == "outbound" or (call.transferred_to or "c")[0] != "c"]
    talked = sum(
        count_minutes(max(call.started_at, since), call.ended_at or now())
        for call in outbound
        if call.started_at is not None
    )
    costs = [entry for entry in await list_rows(session, LedgerEntry) if entry.kind != "credit"]
    return {
        "running": sum(call.status in OPEN and call.ended_at is None and call.carrier != CHAT for call in calls),
        "held": sum(hold.amount for hold in await list_rows(session, LedgerHold)),
        "calls_per_hour": sum(call.created_at >= since for call in outbound),
        "minutes_per_hour": approximate(talked),
        "texts_per_hour": sum(each.created_at >= since for each in messages if each.direction == "outbound"),
        "spend_per_hour": approximate(float(sum(-entry.amount for entry in costs if entry.created_at >= since))),
    }


async def list_rows(session: WriteSession, table: Any) -> list[Any]:
    return list(await session.exec(session.select(table).execution_options(populate_existing=True)))


def count_minutes(begin: datetime, end: datetime) -> float:
    return max(0.0, (end - begin).total_seconds() / MINUTE)


def approximate(number: float) -> Any:
    """Return a number that equals others which differ by the time between two statements."""
    return Approximate(number)


class Approximate(float):
    """A number of minutes."""

    def __eq__(self, other: object) -> bool:
        return abs(float(self) - float(other)) < 0.5  # type: ignore[arg-type]

    __hash__ = float.__hash__


@pytest.mark.parametrize("many_changes", [0, 7, 10**6])
async def test_counters_have_what_rows_have(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch, many_changes: int
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", many_changes)
    scene = Scene(runtime, await organizations.create(policy=LIMITED), Random(many_changes))
    await scene.prepare()
    for step in range(STEPS):
        await scene.act()
        CLOCK.advance(scene.random.choice((0, 0, 1, 7 * MINUTE)))
        if step % 40 == 0:
            await runtime.call(compact_limit_counters)
        await scene.require_equal()
    for seconds in (30 * MINUTE, 40 * MINUTE, DAY, 2 * DAY):
        CLOCK.advance(seconds)
        await scene.require_equal()


async def test_counters_have_what_rows_have_after_everything_at_once(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", 0)
    scene = Scene(runtime, await organizations.create(policy=LIMITED), Random(1))
    await scene.prepare()

    async def act() -> None:
        for _ in range(20):
            await scene.act()
            async with runtime.database.write(scene.caller.organization_id) as session:
                await acquire_call_allowance(session)

    await asyncio.gather(*(act() for _ in range(6)), runtime.call(compact_limit_counters))
    await scene.require_equal()
    await runtime.call(compact_limit_counters)
    async with runtime.database.write(scene.caller.organization_id) as session:
        assert not (await session.exec(select(LimitCounterChange))).all(), "they have been merged"
        for table in (Call, SmsMessage, WidgetSession, LedgerHold):
            await session.exec(delete(table).where(session.owns(table)))
    await scene.require_equal()


async def test_counts_that_are_too_old_for_a_limit_are_deleted(runtime: Runtime, organizations: Organizations) -> None:
    scene = Scene(runtime, await organizations.create(policy=LIMITED), Random(2))
    await scene.prepare()
    for _ in range(20):
        await scene.act()
    CLOCK.advance(2 * DAY)
    await scene.call()
    await runtime.call(compact_limit_counters)
    async with runtime.database.write(scene.caller.organization_id) as session:
        moments = (await session.exec(select(LimitCounter.moment))).all()
    assert all(moment > now() - timedelta(hours=2) for moment in moments)
