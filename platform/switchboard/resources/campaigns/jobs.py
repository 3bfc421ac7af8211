"""Work on campaigns."""

from typing import Final
from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.foundation.work import Work
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.resources.campaigns import dialer
from switchboard.resources.campaigns.queries import DUE_CAMPAIGNS


async def dial_campaigns(
    settings: Settings, database: Database, media_servers: MediaServers, *, organization_id: UUID
) -> None:
    """Dial for the campaigns of an organization that are due: one was started, a call of one has ended, or contacts of
    one may be called now. While all servers are full of calls, they stay due.
    """
    if not await media_servers.has_capacity():
        return  # calling hours and the do-not-call list are checked when there is capacity
    await dialer.dial_due_contacts(database, settings.campaign_tick, organization_id)


WORK: Final = (Work(dial_campaigns, DUE_CAMPAIGNS),)
