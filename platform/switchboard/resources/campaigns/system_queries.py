"""Queries about campaigns that cross organizations."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import update
from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.identity.service import select_suspended_ids

BATCH = 100


async def claim_due_campaigns(session: SystemSession, *, lease: timedelta) -> set[UUID]:
    """Claim the due campaigns for the time of a lease; return the ids of their organizations. Those of a suspended
    organization stay due.
    """
    due = (
        select(Campaign.id)
        .where(col(Campaign.due_at) <= now(), col(Campaign.organization_id).not_in(select_suspended_ids()))
        .order_by(col(Campaign.due_at))
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    claimed = (
        update(Campaign)
        .where(col(Campaign.id).in_(due.scalar_subquery()))
        .values(due_at=now() + lease)
        .returning(col(Campaign.organization_id))
    )
    return set((await session.exec(claimed)).scalars())
