"""Waiting for the end of a call that a simulated caller placed."""

import asyncio
from uuid import UUID

from sqlmodel import col

from switchboard.foundation.database import Database
from switchboard.resources.calls.models import Call

POLL_SECONDS = 0.1


async def wait_until_settled(
    database: Database, organization_id: UUID, carrier_call_id: str, *, seconds: float
) -> Call:
    """Wait until a call has ended in the database, and return it. Raises `TimeoutError` if that takes longer."""
    async with asyncio.timeout(seconds):
        while True:
            async with database.tenant(organization_id) as session:
                found = (
                    await session.exec(session.select(Call).where(col(Call.carrier_call_id) == carrier_call_id))
                ).one_or_none()
            if found is not None and found.ended_at is not None:
                return found
            await asyncio.sleep(POLL_SECONDS)
