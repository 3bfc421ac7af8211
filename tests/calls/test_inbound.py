"""Inbound calls as carriers announce them."""

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database, is_database_away, session
from switchboard.plugin_sdk import ConnectMedia, IncomingCall
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.queries import lock_calls
from switchboard.resources.identity.policy import Policy

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number


async def test_a_call_that_is_announced_several_times_at_once_is_one_call(live: LivePlatform) -> None:
    router = live.runtime.call(InboundCallRouter)
    for _ in range(5):
        incoming = IncomingCall(f"lb-9-{uuid4().hex}", "+15550100001", live.number)
        answers = await asyncio.gather(
            *(router.answer_inbound_call(live.caller.organization_id, "loopback", incoming) for _ in range(4))
        )
        assert len({type(answer) for answer in answers}) == 1
    assert (await live.caller.get("/v1/calls")).json["total"] == 5


async def test_calls_that_arrive_at_once_do_not_exceed_the_organizations_limit(
    live: LivePlatform, organizations: Organizations
) -> None:
    caller = await organizations.create(policy=Policy(max_concurrent_calls=2))
    small = await create_bakery(live.runtime, caller, fresh_number())
    router = live.runtime.call(InboundCallRouter)
    announced = [IncomingCall(f"lb-9-{uuid4().hex}", "+15550100001", small.number) for _ in range(6)]
    answers = await asyncio.gather(
        *(router.answer_inbound_call(caller.organization_id, "loopback", incoming) for incoming in announced)
    )
    assert sorted(type(answer).__name__ for answer in answers) == 2 * ["ConnectMedia"] + 4 * ["RejectCall"]
    assert (await caller.get("/v1/calls")).json["total"] == 6


@pytest.mark.real_time
async def test_announcements_that_wait_for_each_other_take_no_connection_from_others(
    live: LivePlatform, organizations: Organizations, servers: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server's transaction has the lock of the organization's calls. Its announcements wait in turn, beside a
    request of its own, and other organizations are answered.
    """
    monkeypatch.setattr(session, "LOCK_MILLISECONDS", 500)
    stranger, elsewhere = await organizations.create(), Database(servers.database_url, pool_size=1)
    router, organization_id = live.runtime.call(InboundCallRouter), live.caller.organization_id
    most = live.runtime.database.pool.size()
    announced = [IncomingCall(f"lb-9-{uuid4().hex}", "+15550100001", live.number) for _ in range(most)]
    async with elsewhere.write(organization_id) as other:
        await lock_calls(other)
        waiting = [
            asyncio.create_task(router.answer_inbound_call(organization_id, "loopback", incoming))
            for incoming in announced
        ]
        (refused, *_), _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert is_database_away(refused.exception())
        assert (await stranger.get("/v1/agents")).status == 200
        assert live.runtime.database.pool.checkedout() < most // 2
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert any(isinstance(answer, ConnectMedia) for answer in answers), "they go on once the lock is free"
    await elsewhere.close()


async def test_an_announcement_without_a_place_joins_the_call_that_another_process_placed(live: LivePlatform) -> None:
    router = live.runtime.call(InboundCallRouter)
    organization_id = live.caller.organization_id
    incoming = IncomingCall(f"lb-9-{uuid4().hex}", "+15550100001", live.number)

    class FullSinceThen(CallAdmission):
        """Admission whose last place the other process takes for the same announcement."""

        async def reserve_place(self, _call_id: UUID) -> bool:
            await router.answer_inbound_call(organization_id, "loopback", incoming)
            return False

    servers = router.media_servers
    full = FullSinceThen(servers.node, servers.redis, servers.engine)
    late = replace(router, media_servers=replace(servers, admission=full))
    assert isinstance(await late.answer_inbound_call(organization_id, "loopback", incoming), ConnectMedia)
    assert (await live.caller.get("/v1/calls")).json["total"] == 1
