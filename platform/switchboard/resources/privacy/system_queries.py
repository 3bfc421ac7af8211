"""Queries about privacy requests that cross organizations."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.privacy.models import PrivacyRequest

BATCH = 100


async def list_due_privacy_requests(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of requests whose wake-up was lost, or whose worker died, longest due first, and of
    exports whose file has expired.
    """
    rows = select(PrivacyRequest.organization_id, PrivacyRequest.id).where(col(PrivacyRequest.due_at) <= now())
    return list((await session.exec(rows.order_by(col(PrivacyRequest.due_at)).limit(BATCH))).all())
