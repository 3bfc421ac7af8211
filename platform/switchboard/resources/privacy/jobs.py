"""Jobs of privacy requests."""

from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.resources.privacy import system_queries
from switchboard.resources.privacy.runner import PrivacyRequestRunner
from switchboard.resources.privacy.service import JOB_SECONDS


async def run_privacy_request(runner: PrivacyRequestRunner, *, organization_id: str, request_id: str) -> None:
    """Carry out a privacy request, unless another worker has claimed it."""
    await runner.run_due_request(UUID(organization_id), UUID(request_id))


async def reconcile_privacy_requests(database: Database, queue: Queue) -> int:
    """Recover requests that no worker runs, and delete expired files; return how many."""
    async with database.system() as session:
        found = await system_queries.list_due_privacy_requests(session)
    for organization_id, request_id in found:
        organization, key = str(organization_id), str(request_id)
        await queue.enqueue(
            "run_privacy_request", timeout_seconds=JOB_SECONDS, organization_id=organization, request_id=key
        )
    return len(found)
