"""A campaign under any order of user actions, call events, and time."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import strategies
from hypothesis.stateful import invariant, precondition, rule
from sqlalchemy import update
from sqlmodel import col, select
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import now
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import CallAnswered, CalleeRinging, CallEnded
from switchboard.plugin_sdk.registry import Registry
from switchboard.plugin_sdk.telephony_events import CallEvent
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import dialer, service
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import CampaignCreate, ContactToCall, Retry
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy

from tests.fixtures.app import fresh_number
from tests.machines.machine import PlatformMachine, play

AT_ONCE, RETRIES = 3, 1
OUTCOMES = ("completed", "busy", "no-answer", "failed", "canceled")
ALLOWED = {
    "start": ("draft",),
    "pause": ("running",),
    "resume": ("paused",),
    "cancel": ("draft", "scheduled", "running", "paused"),
}
CALL_STATUSES = {"dialing": ("queued", "ringing"), "in_progress": ("in-progress",)}


class CampaignMachine(PlatformMachine):
    """A campaign of thirty contacts, three at once, with one retry for busy numbers and voicemail."""

    async def begin(self) -> None:
        async with self.runtime.database.write(self.organization_id) as session:
            parts = self.runtime
            agent_data = AgentCreate(name="Agent")
            agent = await parts.call(AgentPublisher).create_agent(session, agent_data, None)
        buyer = self.runtime.call(purchases.NumberBuyer)
        number = await buyer.buy_number(self.organization_id, PhoneNumberBuy(phone_number=fresh_number()))
        people = [ContactToCall(phone_number=f"+155502{place:05d}") for place in range(30)]
        data = CampaignCreate(
            name="Machine",
            agent_id=str(agent.id),
            phone_number_id=str(number.id),
            max_concurrent=AT_ONCE,
            contacts=people,
            retry=Retry(attempts=RETRIES, delay_seconds=60, on=["busy", "voicemail"]),
        )
        async with self.runtime.database.write(self.organization_id) as session:
            self.campaign_id = (await campaigns.create_campaign(session, data)).id
        self.calls_before_opt_out: dict[str, int] = {}
        self.statuses = ["draft"]

    @property
    def status(self) -> str:
        return self.statuses[-1]

    @rule(action=strategies.sampled_from(tuple(ALLOWED)))
    def send_user_action(self, action: str) -> None:
        async def act() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                await getattr(service, f"{action}_campaign")(session, self.campaign_id)

        if self.status in ALLOWED[action]:
            self.run(act())
        else:
            with pytest.raises(InvalidState):
                self.run(act())

    @rule()
    def run_dialer(self) -> None:
        self.run(
            dialer.dial_due_contacts(self.runtime.database, self.runtime.settings.campaign_tick, self.organization_id)
        )

    @precondition(lambda self: self.status != "draft")
    @rule(
        index=strategies.integers(0, AT_ONCE - 1),
        event_name=strategies.sampled_from(("rings", "answered", "machine", *OUTCOMES)),
    )
    def advance_call(self, index: int, event_name: str) -> None:
        async def apply_event() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                active_calls = (
                    select(Call).where(col(Call.ended_at).is_(None)).order_by(col(Call.id)).offset(index).limit(1)
                )
                call = (await session.exec(active_calls)).one_or_none()
            if call is not None:
                leg = f"leg of {call.id}"
                events: dict[str, CallEvent] = {
                    "rings": CalleeRinging(leg),
                    "answered": CallAnswered(leg, "human"),
                    "machine": CallAnswered(leg, "machine"),
                }
                event = events.get(event_name) or CallEnded(leg, event_name)  # type: ignore[arg-type]
                await self.runtime.call(CarrierEventHandler).apply_call_event(
                    self.organization_id, "loopback", event, call_id=call.id
                )

        self.run(apply_event())

    @rule(place=strategies.integers(0, 29))
    def add_to_do_not_call_list(self, place: int) -> None:
        number = f"+155502{place:05d}"

        async def add() -> int:
            async with self.runtime.database.write(self.organization_id) as session:
                await do_not_call.add_entry(session, number, source="api")
                return len((await session.exec(select(Call).where(col(Call.to_number) == number))).all())

        self.calls_before_opt_out.setdefault(number, self.run(add()))

    @rule()
    def let_time_pass(self) -> None:
        async def wait() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                await session.exec(
                    update(CampaignContact).values(dial_at=col(CampaignContact.dial_at) - timedelta(minutes=2))
                )

        self.run(wait())

    @invariant()
    def assert_invariants(self) -> None:
        self.run(self._check())

    async def _check(self) -> None:
        async with self.runtime.database.write(self.organization_id) as session:
            campaign = await get_row(session, Campaign, self.campaign_id)
            contacts = (await session.exec(select_campaign_contacts(session, self.campaign_id))).all()
            calls = {call.id: call for call in (await session.exec(select(Call))).all()}
        counts = Counter(contact.status for contact in contacts)
        for counter in ("completed", "failed", "skipped", "canceled"):
            assert getattr(campaign, counter) == counts[counter], counter
        assert campaign.called == sum(contact.called_at is not None for contact in contacts)
        assert campaign.in_flight == counts["dialing"] + counts["in_progress"] <= AT_ONCE
        assert len(calls) == sum(contact.attempts for contact in contacts)
        dialed = Counter(call.to_number for call in calls.values())
        assert all(count <= 1 + RETRIES for count in dialed.values())
        assert all(dialed[number] <= before for number, before in self.calls_before_opt_out.items()), (
            "whoever is listed is not called any more"
        )
        for contact in contacts:
            call = calls[contact.call_id] if contact.call_id else None
            assert (call is not None and call.ended_at is None) == (contact.status in CALL_STATUSES), contact.status
            assert call is None or call.ended_at is not None or call.status in CALL_STATUSES[contact.status]
        remaining = counts["pending"] + counts["dialing"] + counts["in_progress"]
        assert (campaign.status == "completed") <= (remaining == 0)
        assert remaining > 0 or campaign.status in ("completed", "canceled")
        assert campaign.status != "canceled" or not counts["pending"] + counts["dialing"]
        assert (
            campaign.status != "running" or campaign.due_at is not None or counts["dialing"] + counts["in_progress"]
        ), "it is looked at again"
        assert campaign.due_at is None or campaign.due_at <= now() + timedelta(minutes=2)
        if campaign.status != self.status:
            self.statuses.append(campaign.status)


def test_campaign_state_machine(servers: DataDirectory, registry: Registry) -> None:
    play(CampaignMachine, servers, registry, examples=15)
