"""Jobs of privacy requests."""

from uuid import UUID

from sqlmodel import col

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue, list_due
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.runner import PrivacyRequestRunner
from switchboard.resources.privacy.service import JOB_SECONDS


async def run_privacy_request(runner: PrivacyRequestRunner, *, organization_id: UUID, request_id: UUID) -> None:
    """Carry out a privacy request, unless another worker has claimed it."""
    await runner.run_due_request(organization_id, request_id)


async def reconcile_privacy_requests(database: Database, queue: Queue) -> int:
    """Recover requests whose wake-up was lost, or whose worker died, longest due first, and delete the files of exports
    that have expired; return how many.
    """
    async with database.system() as session:
        found = await list_due(session, PrivacyRequest, col(PrivacyRequest.due_at))
    for organization_id, request_id in found:
        await queue.enqueue(
            "run_privacy_request",
            timeout_seconds=JOB_SECONDS,
            organization_id=organization_id,
            request_id=request_id,
        )
    return len(found)
