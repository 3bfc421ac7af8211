"""Update campaigns when their calls change state, in the transaction of the call's own change."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from pydantic import JsonValue
from sqlmodel import col

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.events.catalog import CallCompleted, CallFailed, CallStarted, EventData
from switchboard.foundation.jobs import wake
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.schemas import Outcome, Retry

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


async def update_campaign_contact(session: TenantSession, data: EventData) -> None:
    """Apply a call event to the campaign of the call; events of other calls change nothing."""
    if not isinstance(data, CallStarted | CallCompleted | CallFailed):
        return
    contact = await _contact_of(session, data.call_id, data.metadata.get("campaign_contact_id"))
    if contact is None:
        return
    if isinstance(data, CallStarted):
        contact.status = "in_progress"
        return
    call = await session.get_one(Call, data.call_id)
    outcome = _outcome(call)
    contact.outcome, contact.error = outcome, call.error_message
    await session.flush()
    await _settle(session, contact, outcome, cut_off=call.ended_reason == EndedReason.SHUTDOWN)
    wake(session, "dial_campaigns", organization_id=str(contact.organization_id))


def _outcome(call: Call) -> Outcome:
    if call.status == "completed" and call.answered_by == "machine":
        return "voicemail"
    return BY_REASON.get(call.ended_reason or "") or BY_STATUS[call.status]


async def _contact_of(session: TenantSession, call_id: UUID, contact_id: JsonValue) -> CampaignContact | None:
    key = parse_id(contact_id) if isinstance(contact_id, str) else None
    if key is None:
        return None
    rows = campaigns.list_all_campaign_contacts(session).where(
        col(CampaignContact.id) == key, col(CampaignContact.call_id) == call_id
    )
    return (await session.exec(rows.with_for_update().execution_options(populate_existing=True))).one_or_none()


async def _settle(session: TenantSession, contact: CampaignContact, outcome: Outcome, *, cut_off: bool) -> None:
    """Retry or finish a contact. A call that was cut off by a stopping server is not a failure of the campaign, and is
    retried whatever outcomes the campaign retries.
    """
    campaign = await _note_call(session, contact.campaign_id, failed=outcome == "failed" and not cut_off)
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
    if campaign.status == "running":
        _break_circuit(campaign, contact.error)


async def _note_call(session: TenantSession, campaign_id: UUID, *, failed: bool) -> Campaign:
    """Record whether a call failed; return the campaign, locked, and make a running one due."""
    campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
    campaign.recent = (campaign.recent + ("f" if failed else "-"))[-LAST_CALLS:]
    if campaign.status == "running":
        campaign.due_at = now()
    await session.flush()
    return campaign


def _break_circuit(campaign: Campaign, error: str | None) -> None:
    """Open the circuit breaker: pause a campaign if half of its last calls failed."""
    if len(campaign.recent) == LAST_CALLS and campaign.recent.count("f") >= TOO_MANY:
        campaign.status, campaign.due_at = "paused", None
        campaign.status_reason = (
            f"{campaign.recent.count('f')} of the last {LAST_CALLS} calls failed. Last error: {error or 'none given'}"
        )
