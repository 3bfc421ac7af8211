"""Rows that have expired are deleted by the worker."""

from datetime import timedelta

from sqlmodel import col, select
from switchboard.apps.worker.jobs import delete_old_idempotent_responses
from switchboard.apps.worker.worker import list_repeated_jobs
from switchboard.foundation.database import BATCH, new_id, now
from switchboard.foundation.web.idempotency import IdempotencyRecord
from switchboard.resources.identity.models import User, UserSession
from switchboard.resources.identity.sign_in import delete_old_sessions
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller


def create_browser_session(user: User, *, created: timedelta, last_seen: timedelta) -> UserSession:
    return UserSession(
        user_id=user.id,
        token_hash=new_id().bytes,
        address="127.0.0.1",
        user_agent="test",
        created_at=now() - created,
        last_seen_at=now() - last_seen,
    )


async def test_expired_browser_sessions_are_deleted_by_the_worker(runtime: Runtime) -> None:
    user = User(email=f"{new_id()}@example.com", password_hash="")
    active = create_browser_session(user, created=timedelta(days=89), last_seen=timedelta(days=13))
    idle = create_browser_session(user, created=timedelta(days=20), last_seen=timedelta(days=15))
    old = create_browser_session(user, created=timedelta(days=91), last_seen=timedelta(0))
    async with runtime.database.system() as session:
        session.add(user)
        await session.flush()
        session.add_all([active, idle, old])
    assert delete_old_sessions in [job for job, _ in list_repeated_jobs()]
    await runtime.call(delete_old_sessions)
    async with runtime.database.system() as session:
        rows = select(UserSession.id).where(col(UserSession.user_id) == user.id)
        assert list((await session.exec(rows)).all()) == [active.id]


async def test_old_idempotent_responses_are_deleted_in_batches(runtime: Runtime, caller: Caller) -> None:
    """One statement for all of them would reach its time limit on a large table, and delete none, every hour."""
    kept = timedelta(hours=23)
    async with runtime.database.write(caller.organization_id) as session:
        for number in range(2 * BATCH + 2):
            record = IdempotencyRecord(
                organization_id=caller.organization_id, key=f"{number}", request_hash=b"", status=201, body=b""
            )
            record.created_at = now() - (kept if number == 0 else timedelta(hours=25))
            session.add(record)
    await runtime.call(delete_old_idempotent_responses)
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(select(IdempotencyRecord.key))).all() == ["0"]
