"""A call under callbacks in any order, late and repeated, with reconciler and cancellation in between."""

from decimal import Decimal

from hypothesis import strategies
from hypothesis.stateful import invariant, rule
from sqlmodel import col, select
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import now
from switchboard.foundation.events.models import Event
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import CallAnswered, CalleeRinging, CallEnded, MachineDetected
from switchboard.plugin_sdk.registry import Registry
from switchboard.plugin_sdk.telephony_events import CallEvent, CallOutcome
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerEntry, LedgerHold
from switchboard.resources.calls import dialing
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.calls.jobs import confirm_call, end_abandoned_call, end_abandoned_calls, hang_up_call
from switchboard.resources.calls.models import ORDER, Call
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.policy import Policy, Prices
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy

from tests.fixtures.app import fresh_number
from tests.fixtures.leases import look_for
from tests.fixtures.work import do_due_work
from tests.machines.machine import PlatformMachine, play

LEG = "leg-1"
OUTCOMES: tuple[CallOutcome, ...] = ("completed", "busy", "no-answer", "failed", "canceled")
ANSWERS = (CallAnswered(LEG, "human"), CallAnswered(LEG, "machine"), CallAnswered(LEG, "unknown"))
ENDS = tuple(CallEnded(LEG, outcome, error_message="reported") for outcome in OUTCOMES)


class CallMachine(PlatformMachine):
    """One outbound call of a prepaid organization."""

    policy = Policy(billing_mode="prepaid", prices=Prices(call_minute=1))

    async def begin(self) -> None:
        async with self.runtime.database.write(self.organization_id) as session:
            await ledger.credit_account(session, Decimal(10))
            data = AgentCreate(name="Agent")
            agent = await self.runtime.call(AgentPublisher).create_agent(session, data, None)
        buyer = self.runtime.call(purchases.NumberBuyer)
        number = await buyer.buy_number(self.organization_id, PhoneNumberBuy(phone_number=fresh_number()))
        async with self.runtime.database.write(self.organization_id) as session:
            call = await calls.prepare_outbound_call(session, agent, number, "+15550100001", metadata={})
            await calls.add_outbound_call(session, call, await acquire_call_allowance(session))
            # The carrier has been asked already: this step is its report.
            call.dialing_at = now()
        self.call = call
        self.final_state: tuple[object, ...] | None = None

    @rule(
        event=strategies.one_of(
            strategies.just(CalleeRinging(LEG)),
            strategies.sampled_from(ANSWERS),
            strategies.just(MachineDetected(LEG)),
            strategies.sampled_from(ENDS),
        )
    )
    def apply_carrier_event(self, event: CallEvent) -> None:
        self.run(
            self.runtime.call(CarrierEventHandler).apply_call_event(
                self.organization_id, "loopback", event, call_id=self.call.id
            )
        )

    @rule()
    def miss_callbacks_for_too_long(self) -> None:
        async def wait() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                call = await lock_row(session, Call, self.call.id)
                call.watch_at = call.watch_at and now().replace(year=2000)
            await look_for(self.runtime)
            await self.runtime.call(end_abandoned_calls)
            await do_due_work(self.runtime, confirm_call, end_abandoned_call, hang_up_call)

        self.run(wait())

    @rule()
    def cancel_call(self) -> None:
        async def cancel() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                await dialing.cancel_call(session, await lock_row(session, Call, self.call.id))

        self.run(cancel())

    @invariant()
    def assert_invariants(self) -> None:
        self.run(self._check())

    async def _check(self) -> None:
        async with self.runtime.database.write(self.organization_id) as session:
            call = await get_row(session, Call, self.call.id)
            names = [event.name for event in (await session.exec(select(Event))).all()]
            holds = (await session.exec(select(LedgerHold))).all()
            entries = (await session.exec(select(LedgerEntry).where(col(LedgerEntry.reference) == call.id))).all()
        assert len(set(names)) == len(names), "each event is told once"
        if self.final_state is not None:
            assert (call.status, call.ended_at, call.error_message) == self.final_state, "what is over stays as it is"
        elif is_over(call):
            self.final_state = (call.status, call.ended_at, call.error_message)
        self._check_order(call)
        assert is_over(call) == (call.ended_at is not None) == ({"call.completed", "call.failed"} & set(names) != set())
        assert ("call.completed" in names) == (call.status == "completed")
        assert ("call.started" in names) == (call.started_at is not None)
        assert bool(holds) != is_over(call), "money is set aside exactly while it may be spent"
        assert len(entries) <= (1 if is_over(call) else 0)
        assert sum((entry.amount for entry in entries), start=Decimal(0)) == (-call.cost_total if is_over(call) else 0)

    def _check_order(self, call: Call) -> None:
        assert ORDER.get(call.status, 3) >= ORDER.get(self.call.status, 3), "no call goes back"
        self.call = call


def test_call_state_machine(servers: DataDirectory, registry: Registry) -> None:
    play(CallMachine, servers, registry, examples=15)
