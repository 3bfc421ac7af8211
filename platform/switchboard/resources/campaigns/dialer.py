"""The dialer: keeps each campaign's calls in flight at its `max_concurrent`, within the organization's concurrency
limit.

Calls are created in the transaction that claims their contacts. From then on they are ordinary calls: dialed once,
reconciled by the calls' own reconciler, and reported to `outcomes.update_campaign_contact` when they end.
"""

from collections import deque
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

import structlog
from sqlalchemy import func, update
from sqlmodel import col, select

from switchboard.foundation.database import Database, TenantSession, now
from switchboard.foundation.events.triggers import set_cause_depth
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    OnDoNotCallList,
    OutboundPaused,
)
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import CallAllowance, acquire_call_allowance
from switchboard.resources.campaigns import lifecycle
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.calling_hours import CallingClock
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.outcomes import build_call_metadata
from switchboard.resources.destinations.service import find_refusals
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy
from switchboard.resources.identity.service import get_policy
from switchboard.resources.identity.suspension import is_suspended
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber

logger = structlog.get_logger()
BATCH = 200
"""Contacts examined in one transaction; some of them cannot be called."""
MOST_CALLS = 10
"""Calls of one transaction: it holds the lock of a prepaid organization's account, for which all its calls wait."""
NO_MONEY = "The balance does not cover another call."


async def dial_due_contacts(database: Database, tick_seconds: float, organization_id: UUID) -> None:
    """Dial contacts of all of an organization's running campaigns, those with the fewest calls in flight first.
    The campaigns of a suspended organization wait.
    """
    tick = timedelta(seconds=tick_seconds)
    async with database.tenant(organization_id) as session:
        waiting = deque[UUID]() if await is_suspended(session) else deque(await _under_way(session))
    while waiting:
        async with database.tenant(organization_id) as session:
            allowance = await acquire_call_allowance(session)
            dialer = await _Dialer.build(session, waiting[0], allowance, share=-(-allowance.calls_left // len(waiting)))
            if not await dialer.dial(tick):
                waiting.popleft()


async def _under_way(session: TenantSession) -> list[UUID]:
    """List the campaigns that dial now, those with the fewest calls in flight first. Scheduled campaigns whose time
    has come start here.
    """
    mine = session.owns(Campaign)
    start_due = update(Campaign).where(mine, col(Campaign.status) == "scheduled", col(Campaign.scheduled_at) <= now())
    await session.exec(start_due.values(status="running", updated_at=now()))
    flying = func.count(col(CampaignContact.id))
    in_flight = (col(CampaignContact.campaign_id) == col(Campaign.id)) & col(CampaignContact.status).in_(
        lifecycle.IN_FLIGHT
    )
    rows = select(Campaign.id).outerjoin(
        CampaignContact, in_flight & (col(CampaignContact.organization_id) == col(Campaign.organization_id))
    )
    return list(
        (
            await session.exec(
                rows.where(mine, col(Campaign.status) == "running").group_by(col(Campaign.id)).order_by(flying)
            )
        ).all()
    )


class _Dialer:
    """Dials for one campaign in one transaction."""

    def __init__(self, session: TenantSession, campaign: Campaign, allowance: CallAllowance, share: int) -> None:
        self._session = session
        self._campaign = campaign
        self._allowance = allowance
        self._share = min(share, MOST_CALLS)
        self._has_more_share = share > MOST_CALLS

    @classmethod
    async def build(cls, session: TenantSession, campaign_id: UUID, allowance: CallAllowance, *, share: int) -> Self:
        """Build the dialer of a campaign, with a share of the free capacity within the campaign's own limit."""
        campaign = await campaigns.get_campaign(session, campaign_id)
        flying = campaigns.list_campaign_contacts(session, campaign_id).where(
            col(CampaignContact.status).in_(lifecycle.IN_FLIGHT)
        )
        in_flight = (await session.exec(select(func.count()).select_from(flying.subquery()))).one()
        return cls(session, campaign, allowance, min(campaign.max_concurrent - in_flight, share))

    async def dial(self, tick: timedelta) -> bool:
        """Dial up to the share; return whether more contacts may be due, because many could not be called."""
        if self._campaign.status != "running":
            return False
        found = await lifecycle.find_obstacle(self._session, self._campaign)
        if found is not None:
            await self._stop(*found)
            return False
        more = self._share > 0 and await self._dial_contacts()
        await self._look_again(tick)
        return more

    async def _dial_contacts(self) -> bool:
        agent = await agents.get_agent(self._session, self._campaign.agent_id)
        number = await numbers.get_phone_number(self._session, self._campaign.phone_number_id)
        claimed = await self._claim()
        refusals = await find_refusals(self._session, [contact.phone_number for contact in claimed])
        policy = await get_policy(self._session, self._campaign.organization_id)
        clock, moment = await self._clock(policy), now()
        called = skipped = 0
        for contact in claimed:
            # A pause of the whole organization is the allowance's refusal, and stops the campaign in `_call`.
            refusal = refusals.get(contact.phone_number)
            if isinstance(refusal, OnDoNotCallList | DestinationNotAllowed):
                contact.status, contact.error = "skipped", refusal.detail
                contact.outcome = "do_not_call" if isinstance(refusal, OnDoNotCallList) else None
                skipped += 1
            elif (opens := clock.opens(contact.phone_number)) > moment:
                contact.dial_at = opens
            else:
                first = contact.attempts == 0
                if not self._share or not await self._call(contact, agent, number):
                    break
                called += first
        await self._session.flush()
        campaign = await campaigns.add_to_counters(self._session, self._campaign.id, called=called, skipped=skipped)
        more = len(claimed) == BATCH if self._share else self._has_more_share
        return campaign.status == "running" and more

    async def _claim(self) -> list[CampaignContact]:
        due = campaigns.list_campaign_contacts(self._session, self._campaign.id, status="pending").where(
            col(CampaignContact.dial_at) <= now()
        )
        ordered = due.order_by(col(CampaignContact.dial_at), col(CampaignContact.id)).limit(BATCH)
        return list((await self._session.exec(ordered.with_for_update(skip_locked=True))).all())

    async def _call(self, contact: CampaignContact, agent: Agent, number: PhoneNumber) -> bool:
        """Create the contact's call; return False if the balance does not cover it or outbound work is paused, which
        pauses the campaign.
        """
        metadata = build_call_metadata(self._campaign.id, contact.id, contact.name)
        set_cause_depth(self._session, contact.cause_depth)
        try:
            call = await calls.prepare_outbound_call(
                self._session,
                agent,
                number,
                contact.phone_number,
                metadata=metadata,
                voicemail_policy=self._campaign.voicemail_policy,
            )
            await calls.add_outbound_call(self._session, call, self._allowance)
        except InsufficientBalance:
            await self._stop("paused", NO_MONEY)
            return False
        except OutboundPaused as error:
            await self._stop("paused", error.detail)
            return False
        contact.status, contact.call_id, contact.called_at = "dialing", call.id, call.created_at
        contact.attempts += 1
        self._share -= 1
        return True

    async def _clock(self, policy: Policy) -> CallingClock:
        organization = await self._session.get_one(Organization, self._campaign.organization_id)
        return CallingClock(policy.calling_hours, home=organization.timezone, moment=now())

    async def _stop(self, status: str, reason: str) -> None:
        await self._session.flush()
        campaign = await campaigns.get_campaign(self._session, self._campaign.id, lock=True)
        logger.warning("campaign stopped", campaign_id=str(campaign.id), status=status, reason=reason)
        if status == "failed":
            await lifecycle.end_campaign(self._session, campaign, status, reason=reason)
        else:
            campaign.status, campaign.status_reason, campaign.due_at = status, reason, None

    async def _look_again(self, tick: timedelta) -> None:
        """Schedule the next look at the campaign: when the first waiting contact may be called, at the next tick at
        the earliest.
        """
        campaign = await campaigns.get_campaign(self._session, self._campaign.id, lock=True)
        if campaign.status == "running":
            waiting = campaigns.list_campaign_contacts(self._session, campaign.id, status="pending").subquery()
            soonest: datetime | None = (await self._session.exec(select(func.min(waiting.c.dial_at)))).one()
            campaign.due_at = max(soonest, now() + tick) if soonest else None
