"""Deletion of one person's contacts from all campaigns."""

from collections import Counter
from uuid import UUID

from sqlmodel import col, delete

from switchboard.foundation.database import TenantSession, is_among
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import CampaignContact
from switchboard.resources.campaigns.service import IN_FLIGHT


async def delete_contacts_of_number(session: TenantSession, phone_number: str) -> int:
    """Delete the contacts with an E.164 number that are not being called, and return how many.

    The counters of their campaigns count the contacts that are left.
    """
    rows = session.select(CampaignContact).where(
        col(CampaignContact.phone_number) == phone_number, col(CampaignContact.status).not_in(IN_FLIGHT)
    )
    found = (await session.exec(rows.order_by(col(CampaignContact.id)).with_for_update())).all()
    changes: dict[UUID, Counter[str]] = {}
    for contact in found:
        less = changes.setdefault(contact.campaign_id, Counter())
        less["total_contacts"] -= 1
        less["called"] -= contact.attempts > 0
        if contact.status in campaigns.COUNTERS:
            less[contact.status] -= 1
    ids = [contact.id for contact in found]
    await session.exec(
        delete(CampaignContact).where(session.owns(CampaignContact), is_among(col(CampaignContact.id), ids))
    )
    for campaign_id in sorted(changes):
        await campaigns.add_to_counters(session, campaign_id, **changes[campaign_id])
    return len(found)
