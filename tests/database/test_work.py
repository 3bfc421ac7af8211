"""Background work: the buckets of workers, their places, and rows that stay due."""

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Uuid, bindparam, func, select
from switchboard.foundation.database import BUCKETS, get_bucket, new_id, now
from switchboard.foundation.work import Work, WorkRunner, share_buckets
from switchboard.resources.calls.queries import CALLS_TO_ANALYZE
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually


def test_every_bucket_has_one_worker_and_few_move_when_a_worker_comes() -> None:
    workers = frozenset({"one", "two", "three"})
    shares = {node: set(share_buckets(node, workers)) for node in workers}
    assert sorted(bucket for share in shares.values() for bucket in share) == list(range(BUCKETS))
    assert all(len(share) > BUCKETS / 6 for share in shares.values())
    more = workers | {"four"}
    for node, share in shares.items():
        kept = set(share_buckets(node, more))
        assert kept <= share, "only the new worker takes buckets"
    assert share_buckets("alone", frozenset()) == tuple(range(BUCKETS))


async def test_the_database_and_the_program_agree_on_buckets(runtime: Runtime) -> None:
    ids = [new_id() for _ in range(50)]
    async with runtime.database.system() as session:
        for each in ids:
            statement = select(func.bucket(bindparam("id", type_=Uuid)))
            ((bucket,),) = await session.fetch(statement, {"id": each})
            assert bucket == get_bucket(each)


async def test_each_due_row_is_tried_once_in_a_look_however_few_places_there_are(
    runtime: Runtime, caller: Caller, stranger: Caller
) -> None:
    """Rows whose work fails stay due. They must not keep others waiting, and not be tried again without a pause."""
    tried, at_once = Counter[UUID](), Counter[UUID]()

    async def fail(*, organization_id: UUID, call_id: UUID) -> None:
        at_once[organization_id] += 1
        assert at_once[organization_id] <= 2, "half of the places"
        tried[call_id] += 1
        async with runtime.database.read(organization_id):
            at_once[organization_id] -= 1
        raise ValueError("a bug")

    due = now() - timedelta(minutes=1)
    calls = [await add_call(runtime, each, now(), analysis_due_at=due) for each in [caller] * 11 + [stranger] * 2]
    for times in (1, 2):
        runner = WorkRunner(runtime.database, [Work(fail, CALLS_TO_ANALYZE, seconds=300, at_once=4)], {})
        await runner.look("fail", range(BUCKETS))
        await runner.finish()
        assert tried == Counter({call.id: times for call in calls})


async def test_work_of_an_organization_that_moves_waits(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    worked: list[UUID] = []

    async def work_on(*, organization_id: UUID, call_id: UUID) -> None:
        worked.append(organization_id)

    due = now() - timedelta(minutes=1)
    for each in (caller, stranger):
        await add_call(runtime, each, now(), analysis_due_at=due)
    async with runtime.database.system() as system:
        (await system.get_one(Organization, caller.organization_id)).moving_since = now()
    runner = WorkRunner(runtime.database, [Work(work_on, CALLS_TO_ANALYZE)], {})
    assert await runner.look("work_on", range(BUCKETS)) == 1
    await runner.finish()
    assert worked == [stranger.organization_id]


async def test_a_wake_up_during_a_look_is_followed_after_it(runtime: Runtime) -> None:
    """The row of the second one was committed after the first look's statement."""
    name, looks = "follow_me", list[int]()

    async def look(job: str, bucket: int) -> None:
        assert job == name
        looks.append(bucket)
        if len(looks) == 1:
            await runtime.queue.wake(name, bucket)

    async def count() -> int:
        return len(looks)

    worker = runtime.queue.worker([name], look)
    running = asyncio.create_task(worker.start())
    await runtime.queue.wake(name, 7)
    await eventually(count, lambda number: number == 2)
    await worker.stop()
    await running
    assert looks == [7, 7]
