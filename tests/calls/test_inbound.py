"""Inbound calls as carriers announce them."""

import asyncio
from uuid import uuid4

from switchboard.plugin_sdk import IncomingCall
from switchboard.resources.calls.inbound import InboundCallRouter

from tests.fixtures.app import LivePlatform


async def test_a_call_that_is_announced_several_times_at_once_is_one_call(live: LivePlatform) -> None:
    router = live.runtime.call(InboundCallRouter)
    for _ in range(5):
        incoming = IncomingCall(f"lb-9-{uuid4().hex}", "+15550100001", live.number)
        answers = await asyncio.gather(
            *(router.answer_inbound_call(live.caller.organization_id, "loopback", incoming) for _ in range(4))
        )
        assert len({type(answer) for answer in answers}) == 1
    assert (await live.caller.get("/v1/calls")).json["total"] == 5
