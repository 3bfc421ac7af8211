"""Jobs of campaigns."""

from datetime import timedelta
from uuid import UUID

from switchboard.resources.campaigns import dialer, system_queries
from switchboard.runtime import Runtime

LEASE = timedelta(seconds=5)


async def dial_campaigns(runtime: Runtime, *, organization_id: str) -> None:
    """Dial for an organization that started a campaign or whose call ended."""
    await dialer.dial_due_contacts(runtime.database, runtime.settings.campaign_tick, UUID(organization_id))


async def reconcile_campaigns(runtime: Runtime) -> None:
    """Wake the dialer for campaigns that have become due."""
    async with runtime.database.system() as session:
        due = await system_queries.claim_due_campaigns(session, lease=LEASE)
    for organization_id in due:
        await runtime.queue.enqueue("dial_campaigns", organization_id=str(organization_id))
