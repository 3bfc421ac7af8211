"""Calls in progress while something fails, and the proof that workers have judged the leases of their processes."""

from uuid import UUID, uuid4

from sqlmodel import col, func, select
from switchboard.foundation.database import now
from switchboard.resources.calls.models import Call

from tests.chaos.traffic import CALLER, Traffic
from tests.fixtures.eventually import eventually
from tests.fixtures.leases import add_dead_process

DEAD_CALLER = "+15550100002"


async def wait_until_leases_are_judged(traffic: Traffic) -> None:
    """Add a call whose process is dead, and wait until a worker has ended it."""
    orphan = Call(
        organization_id=traffic.organization_id,
        direction="inbound",
        status="in-progress",
        from_number=DEAD_CALLER,
        to_number=traffic.number,
        carrier="loopback",
        carrier_call_id=uuid4().hex,
        holder=await add_dead_process(traffic.runtime.database),
        started_at=now(),
    )
    async with traffic.runtime.database.write(traffic.organization_id) as session:
        session.add(orphan)

    async def is_over() -> bool:
        return (await find_call(traffic, orphan.id)).ended_at is not None

    await eventually(is_over)


async def find_call(traffic: Traffic, call_id: UUID) -> Call:
    async with traffic.runtime.database.write(traffic.organization_id) as session:
        return (await session.exec(select(Call).where(col(Call.id) == call_id))).one()


async def count_live_calls(traffic: Traffic) -> int:
    """Return the number of callers whose calls are in progress, without that of `wait_until_leases_are_judged`."""
    live = col(Call.status) == "in-progress", col(Call.from_number) == CALLER
    async with traffic.runtime.database.write(traffic.organization_id) as session:
        return (await session.exec(select(func.count()).select_from(Call).where(*live))).one()
