"""Nobody is dialed twice and nobody is forgotten while a campaign's workers are killed.

`make faults` runs it for longer.
"""

import asyncio
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import update
from sqlmodel import col, select
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.database import now
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk.telephony_events import CallEvent
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import IN_FLIGHT, Campaign
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import CampaignCreate, ContactToCall
from switchboard.resources.identity import service as identity
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import fresh_number, run_server
from tests.fixtures.eventually import POLL_SECONDS
from tests.fixtures.processes import SCALE, Workers, start_platform

pytestmark = pytest.mark.system

CONTACTS, LEAST_KILLS = 90 * SCALE, 2 * SCALE
AT_ONCE = 6
SETTLED_PER_KILL = 20
"""Contacts settled between the last call that a kill ended and the next kill. A kill ends `AT_ONCE` calls at most and
one call in ten fails anyway, so fewer than ten of the last twenty fail and the circuit breaker stays closed. The first
kill waits for nobody: nothing has failed before it."""
WAYS = ("20", "40", "20", "25", "40", "20", "22", "40", "20", "30")


async def make_campaign(runtime: Runtime, contact_count: int) -> tuple[UUID, UUID]:
    """Start a campaign; return the organization's id and its own."""
    async with runtime.database.system() as session:
        organization = identity.create_organization(session, name="Faults")
    async with runtime.database.write(organization.id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, list_embedded_providers(runtime.registry))
    async with runtime.database.write(organization.id) as session:
        made = AgentCreate(name="Agent", greeting_message="Good day, this is the bakery on the corner.")
        agent = await runtime.call(AgentPublisher).create_agent(session, made, None)
    buyer = runtime.call(purchases.NumberBuyer)
    number = await buyer.buy_number(organization.id, PhoneNumberBuy(phone_number=fresh_number()))
    people = [
        ContactToCall(phone_number=f"+1555{place:05d}{WAYS[place % len(WAYS)]}") for place in range(contact_count)
    ]
    data = CampaignCreate(
        name="All", agent_id=str(agent.id), phone_number_id=str(number.id), max_concurrent=AT_ONCE, contacts=people
    )
    async with runtime.database.write(organization.id) as session:
        campaign = await campaigns.create_campaign(session, data)
        await campaigns.start_campaign(session, campaign.id)
    return organization.id, campaign.id


async def look(runtime: Runtime, organization_id: UUID, campaign_id: UUID) -> tuple[Campaign, set[UUID]]:
    """Return the campaign and its contacts in flight, after checking the limit and the counters against the
    contacts.
    """
    async with runtime.database.write(organization_id) as session:
        campaign = await lock_row(session, Campaign, campaign_id)
        contacts = (await session.exec(select_campaign_contacts(session, campaign_id))).all()
    counts = Counter(contact.status for contact in contacts)
    in_flight = {contact.id for contact in contacts if contact.status in IN_FLIGHT}
    assert len(in_flight) <= AT_ONCE
    assert (campaign.completed, campaign.failed) == (counts["completed"], counts["failed"])
    return campaign, in_flight


async def kill_workers_until_finished(
    runtime: Runtime, workers: Workers, organization_id: UUID, campaign_id: UUID
) -> Campaign:
    """Kill the workers in turn, each time with calls in flight."""
    kill_at, lost = 1, set[UUID]()
    while True:
        campaign, in_flight = await look(runtime, organization_id, campaign_id)
        if campaign.status != "running":
            return campaign
        settled = campaign.completed + campaign.failed
        if lost & in_flight:
            kill_at = settled + SETTLED_PER_KILL
        elif settled >= kill_at and in_flight:
            await workers.kill_one(oldest=True)
            lost = in_flight
        await _let_time_pass(runtime, organization_id)
        await asyncio.sleep(POLL_SECONDS)


async def _let_time_pass(runtime: Runtime, organization_id: UUID) -> None:
    """Shorten the ringing time: the simulated carrier dies with its worker, and reports nothing any more."""
    async with runtime.database.write(organization_id) as session:
        silent = update(Call).where(
            col(Call.organization_id) == organization_id, col(Call.status).in_(("queued", "ringing"))
        )
        patience = timedelta(seconds=5)
        await session.exec(silent.where(col(Call.watch_at) > now() + 2 * patience).values(watch_at=now() + patience))


@pytest.mark.timeout(420 * SCALE)
async def test_a_campaign_survives_killed_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dialed: dict[UUID | None, set[str]] = defaultdict(set)

    async def note(
        handler: CarrierEventHandler, organization_id: UUID, carrier: str, event: CallEvent, *, call_id: UUID | None
    ) -> None:
        dialed[call_id].add(event.carrier_call_id)
        await apply(handler, organization_id, carrier, event, call_id=call_id)

    apply = CarrierEventHandler.apply_call_event
    monkeypatch.setattr(CarrierEventHandler, "apply_call_event", note)
    async with (
        start_platform(tmp_path) as (runtime, _, workers),
        run_server(runtime, worker=False),
    ):
        organization_id, campaign_id = await make_campaign(runtime, CONTACTS)
        async with asyncio.timeout(360 * SCALE):
            campaign = await kill_workers_until_finished(runtime, workers, organization_id, campaign_id)
        assert campaign.status == "completed", campaign.status_reason
        assert workers.kills >= LEAST_KILLS
        async with runtime.database.write(organization_id) as session:
            contacts = (await session.exec(select_campaign_contacts(session, campaign_id))).all()
            calls = (await session.exec(select(Call).where(col(Call.organization_id) == organization_id))).all()
    assert (campaign.called, campaign.completed + campaign.failed) == (CONTACTS, CONTACTS)
    assert Counter(call.to_number for call in calls) == Counter(contact.phone_number for contact in contacts), (
        "each is called once"
    )
    assert all(len(carrier_calls) == 1 for carrier_calls in dialed.values()), "no call was placed twice"
    assert all(call.ended_at is not None for call in calls)
