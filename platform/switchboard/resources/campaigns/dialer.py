"""The contacts of campaigns: dialed within their calling hours, and updated when their calls change state.

The dialer keeps each campaign's calls in flight at its `max_concurrent`, within the organization's concurrency limit.

Calls are created in the transaction that claims their contacts. From then on they are ordinary calls: dialed once,
reconciled by the calls' own reconciler, and reported to `update_campaign_contact` when they end.
"""

from collections import deque
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from pydantic import BaseModel, JsonValue

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.events.catalog import CallCompleted, CallFailed, CallStarted
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    OnDoNotCallList,
    OutboundPaused,
)
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import CallAllowance, acquire_call_allowance
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import queries
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.schemas import Outcome, Retry
from switchboard.resources.destinations.service import find_refusals
from switchboard.resources.identity.calling_hours import CallingClock
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import get_policy, is_suspended
from switchboard.resources.phone_numbers.models import PhoneNumber

# Update campaigns when their calls change state, in the transaction of the call's own change.

STATUS_OF: dict[Outcome, str] = {
    "answered": "completed",
    "voicemail": "completed",
    "do_not_call": "skipped",
    "canceled": "canceled",
}
"""Final status of a contact by outcome; every other outcome is `failed`."""
BY_REASON: dict[str, Outcome] = {
    EndedReason.VOICEMAIL: "voicemail",
    EndedReason.DO_NOT_CALL: "do_not_call",
    EndedReason.INVALID_NUMBER: "invalid_number",
}
BY_STATUS: dict[str, Outcome] = {
    "completed": "answered",
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
    "canceled": "canceled",
}
LAST_CALLS = 20
TOO_MANY = LAST_CALLS // 2

CONTACT_METADATA: Final = ("campaign_id", "campaign_contact_id", "name")
"""Names of the metadata of a campaign's calls, which fill placeholders of the agent's prompt."""


def build_call_metadata(campaign_id: UUID, contact_id: UUID, name: str | None) -> dict[str, JsonValue]:
    """Build the metadata of a campaign's call: it identifies the contact, and gives the agent's prompt a name."""
    values: tuple[JsonValue, ...] = (str(campaign_id), str(contact_id), name or "")
    return dict(zip(CONTACT_METADATA, values, strict=True))


async def update_campaign_contact(session: WriteSession, data: BaseModel) -> None:
    """Apply a call event to the campaign of the call; events of other calls change nothing."""
    if not isinstance(data, CallStarted | CallCompleted | CallFailed):
        return
    named = data.metadata.get("campaign_contact_id")
    contact_id = parse_id(named) if isinstance(named, str) else None
    contact = await session.lock(CampaignContact, contact_id)
    if contact is None or contact.call_id != data.call_id:
        return
    if isinstance(data, CallStarted):
        contact.status = "in_progress"
        return
    call = await session.get_one(Call, data.call_id)
    if call.status == "completed" and call.answered_by == "machine":
        outcome: Outcome = "voicemail"
    else:
        outcome = BY_REASON.get(call.ended_reason or "") or BY_STATUS[call.status]
    contact.outcome, contact.error = outcome, call.error_message
    await _settle(session, contact, outcome, cut_off=call.ended_reason == EndedReason.SHUTDOWN)
    session.wake("dial_campaigns")


async def _settle(session: WriteSession, contact: CampaignContact, outcome: Outcome, *, cut_off: bool) -> None:
    """Retry or finish a contact. A call that was cut off by a stopping server is not a failure of the campaign, and is
    retried whatever outcomes the campaign retries.
    """
    campaign = await lock_row(session, Campaign, contact.campaign_id)
    campaign.in_flight -= 1
    campaign.recent = (campaign.recent + ("f" if outcome == "failed" and not cut_off else "-"))[-LAST_CALLS:]
    if campaign.status == "running":
        campaign.due_at = now()
    retry = Retry.model_validate(campaign.retry) if campaign.retry else None
    if (
        retry
        and (cut_off or outcome in retry.on)
        and contact.attempts <= retry.attempts
        and campaign.status in ("running", "paused")
    ):
        contact.status, contact.dial_at = "pending", now() + timedelta(seconds=retry.delay_seconds)
    else:
        contact.status = STATUS_OF.get(outcome, "failed")
        await campaigns.add_to_counters(session, campaign.id, **{contact.status: 1})
    # The circuit breaker: half of the last calls have failed.
    failed = campaign.recent.count("f")
    if campaign.status == "running" and len(campaign.recent) == LAST_CALLS and failed >= TOO_MANY:
        campaign.status, campaign.due_at = "paused", None
        campaign.status_reason = (
            f"{failed} of the last {LAST_CALLS} calls failed. Last error: {contact.error or 'none given'}"
        )


logger = structlog.get_logger()
BATCH = 200
"""Contacts examined in one transaction; some of them cannot be called."""
MOST_CALLS = 10
"""Calls of one transaction: it holds the lock of a prepaid organization's account, for which all its calls wait."""
NO_MONEY = "The balance does not cover another call."


async def dial_due_contacts(database: Database, tick_seconds: float, organization_id: UUID) -> None:
    """Dial contacts of the campaigns of an organization that are due, those with the fewest calls in flight first.
    The campaigns of a suspended organization wait.
    """
    tick = timedelta(seconds=tick_seconds)
    async with database.write(organization_id) as session:
        waiting = deque[UUID]()
        if not await is_suspended(session):
            await queries.start_due_campaigns(session)
            waiting.extend(await queries.list_due_campaigns(session))
    while waiting:
        async with database.write(organization_id) as session:
            allowance = await acquire_call_allowance(session)
            campaign = await get_row(session, Campaign, waiting[0])
            free = -(-allowance.calls_left // len(waiting))
            if not await _Dialer(session, campaign, allowance, free=free).dial(tick):
                waiting.popleft()


class _Dialer:
    """Dials for one campaign in one transaction, within its share of the organization's `free` calls."""

    def __init__(self, session: WriteSession, campaign: Campaign, allowance: CallAllowance, *, free: int) -> None:
        wanted = campaign.max_concurrent - campaign.in_flight
        self._session = session
        self._campaign = campaign
        self._allowance = allowance
        self._is_crowded = free < wanted
        self._share = min(wanted, free, MOST_CALLS)
        self._has_more_share = min(wanted, free) > MOST_CALLS

    async def dial(self, tick: timedelta) -> bool:
        """Dial up to the share; return whether more contacts may be due, because many could not be called."""
        if self._campaign.status != "running":
            return False
        found = await campaigns.find_obstacle(self._session, self._campaign)
        if found is not None:
            await self._stop(*found)
            return False
        more = self._share > 0 and await self._dial_contacts()
        await self._look_again(tick)
        return more

    async def _dial_contacts(self) -> bool:
        agent = await self._session.get_one(Agent, self._campaign.agent_id)
        number = await self._session.get_one(PhoneNumber, self._campaign.phone_number_id)
        claimed = await queries.claim_due_contacts(self._session, self._campaign.id, most=BATCH)
        refusals = await find_refusals(self._session, [contact.phone_number for contact in claimed])
        policy = await get_policy(self._session, self._campaign.organization_id)
        organization = await self._session.get_one(Organization, self._campaign.organization_id)
        moment = now()
        clock = CallingClock(policy.calling_hours, home=organization.timezone, moment=moment)
        called = dialed = skipped = 0
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
                dialed += 1
        campaign = await campaigns.add_to_counters(
            self._session, self._campaign.id, called=called, skipped=skipped, in_flight=dialed
        )
        more = len(claimed) == BATCH if self._share else self._has_more_share
        return campaign.status == "running" and more

    async def _call(self, contact: CampaignContact, agent: Agent, number: PhoneNumber) -> bool:
        """Create the contact's call; return False if the balance does not cover it or outbound work is paused, which
        pauses the campaign.
        """
        metadata = build_call_metadata(self._campaign.id, contact.id, contact.name)
        self._session.cause_depth = contact.cause_depth
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

    async def _stop(self, status: str, reason: str) -> None:
        campaign = await lock_row(self._session, Campaign, self._campaign.id)
        logger.warning("campaign stopped", campaign_id=str(campaign.id), status=status, reason=reason)
        if status == "failed":
            await campaigns.end_campaign(self._session, campaign, status, reason=reason)
        else:
            campaign.status, campaign.status_reason, campaign.due_at = status, reason, None

    async def _look_again(self, tick: timedelta) -> None:
        """Schedule the next look: when the first waiting contact may be called, at the next tick at the earliest.

        A campaign that the organization's limit keeps from calling stays due, so that it has its turn when a call of
        another campaign ends.
        """
        campaign = await lock_row(self._session, Campaign, self._campaign.id)
        if campaign.status == "running":
            soonest = await queries.find_soonest_dial(self._session, campaign.id)
            next_look = now() if self._is_crowded and not self._share else now() + tick
            campaign.due_at = max(soonest, next_look) if soonest else None
