"""Jobs of campaigns."""

from datetime import timedelta
from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.campaigns import dialer
from switchboard.resources.campaigns.queries import claim_due_campaigns

LEASE = timedelta(seconds=5)


async def dial_campaigns(
    settings: Settings, database: Database, admission: CallAdmission, *, organization_id: UUID
) -> None:
    """Dial for an organization that started a campaign or whose call ended, unless all servers are full of calls."""
    if not await admission.has_capacity():
        return  # its contacts stay due: calling hours and the do-not-call list are checked when there is capacity
    await dialer.dial_due_contacts(database, settings.campaign_tick, organization_id)


async def reconcile_campaigns(database: Database, queue: Queue) -> int:
    """Wake the dialer for campaigns that have become due; return for how many organizations."""
    async with database.system() as session:
        due = await claim_due_campaigns(session, lease=LEASE)
    for organization_id in due:
        await queue.enqueue("dial_campaigns", organization_id=organization_id)
    return len(due)
