"""Nobody is dialed twice and nobody is forgotten: a campaign of 500 contacts while a worker is killed every five
seconds.
"""

import asyncio
import socket
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import func, update
from sqlmodel import col, select
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.database import now
from switchboard.plugin_sdk.telephony_events import CallEvent
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.calls import callbacks
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import lifecycle
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.lifecycle import IN_FLIGHT
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.schemas import CampaignCreate, ContactToCall
from switchboard.resources.identity import service as identity
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import fresh_number, listening
from tests.fixtures.processes import Workers, platform

CONTACTS, AT_ONCE = 500, 20
KILL_SECONDS = 5.0
# Outcomes by last digit without kills; one in ten fails, so that the circuit breaker stays closed.
WAYS = ("20", "40", "20", "25", "40", "20", "22", "40", "20", "30")


async def make_campaign(runtime: Runtime) -> tuple[UUID, UUID]:
    """Start a campaign; return the organization's id and its own."""
    async with runtime.database.system() as session:
        organization = await identity.create_organization(session, name="Faults")
    async with runtime.database.tenant(organization.id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, list_embedded_providers(runtime.registry))
    async with runtime.database.tenant(organization.id) as session:
        made = AgentCreate(name="Agent", greeting_message="Good day, this is the bakery on the corner.")
        agent = await agents.create_agent(
            session, made, keyring=runtime.keyring, outbound=runtime.outbound, voices=runtime.voices
        )
    buyer = purchases.NumberBuyer(runtime.database, runtime.providers, runtime.settings.base_url)
    number = await buyer.buy_number(organization.id, PhoneNumberBuy(phone_number=fresh_number()))
    people = [ContactToCall(phone_number=f"+1555{place:05d}{WAYS[place % len(WAYS)]}") for place in range(CONTACTS)]
    data = CampaignCreate(
        name="All", agent_id=str(agent.id), phone_number_id=str(number.id), max_concurrent=AT_ONCE, contacts=people
    )
    async with runtime.database.tenant(organization.id) as session:
        campaign = await campaigns.create_campaign(session, data)
        await lifecycle.start_campaign(session, campaign.id)
    return organization.id, campaign.id


async def kill(workers: Workers) -> None:
    """Kill workers in turn: each lives for two periods, long enough to start on a busy machine."""
    while True:
        await asyncio.sleep(KILL_SECONDS)
        await workers.kill_one(oldest=True)


async def finished(runtime: Runtime, organization_id: UUID, campaign_id: UUID) -> Campaign:
    """Wait for the campaign's end. At each look the calls in flight are within the limit, and the counters equal the
    contacts.
    """
    while True:
        async with runtime.database.tenant(organization_id) as session:
            statuses = select(CampaignContact.status, func.count()).where(
                col(CampaignContact.campaign_id) == campaign_id
            )
            campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
            counts = dict((await session.exec(statuses.group_by(col(CampaignContact.status)))).all())
        assert sum(counts.get(status, 0) for status in IN_FLIGHT) <= AT_ONCE
        assert (campaign.completed, campaign.failed) == (counts.get("completed", 0), counts.get("failed", 0))
        if campaign.status != "running":
            return campaign
        await _let_time_pass(runtime, organization_id)
        await asyncio.sleep(0.05)


async def _let_time_pass(runtime: Runtime, organization_id: UUID) -> None:
    """Shorten the ringing time: the simulated carrier dies with its worker, and reports nothing any more."""
    async with runtime.database.tenant(organization_id) as session:
        silent = update(Call).where(
            col(Call.organization_id) == organization_id, col(Call.status).in_(("queued", "ringing"))
        )
        patience = timedelta(seconds=5)
        await session.exec(silent.where(col(Call.watch_at) > now() + 2 * patience).values(watch_at=now() + patience))


@pytest.mark.timeout(420)
async def test_a_campaign_survives_its_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: dict[UUID | None, set[str]] = defaultdict(set)

    async def note(
        runtime: Runtime, organization_id: UUID, carrier: str, event: CallEvent, *, call_id: UUID | None
    ) -> None:
        dialled[call_id].add(event.carrier_call_id)
        await apply(runtime, organization_id, carrier, event, call_id=call_id)

    apply = callbacks.apply_call_event
    monkeypatch.setattr(callbacks, "apply_call_event", note)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with platform(tmp_path, port=port) as (runtime, _, workers), listening(runtime, worker=False):
        organization_id, campaign_id = await make_campaign(runtime)
        async with asyncio.timeout(360), asyncio.TaskGroup() as group:
            killing = group.create_task(kill(workers))
            campaign = await finished(runtime, organization_id, campaign_id)
            killing.cancel()
        assert workers.kills >= 3
        async with runtime.database.tenant(organization_id) as session:
            contacts = (await session.exec(campaigns.list_campaign_contacts(session, campaign_id))).all()
            calls = (await session.exec(select(Call).where(col(Call.organization_id) == organization_id))).all()
    assert (campaign.status, campaign.called, campaign.completed + campaign.failed) == ("completed", CONTACTS, CONTACTS)
    assert Counter(call.to_number for call in calls) == Counter(contact.phone_number for contact in contacts), (
        "each is called once"
    )
    assert all(len(carrier_calls) == 1 for carrier_calls in dialled.values()), "no call was placed twice"
    assert all(call.ended_at is not None for call in calls)
