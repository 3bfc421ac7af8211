"""The socket that a carrier opens for a call's audio."""

from uuid import UUID, uuid4

from aiohttp import ClientSession, WSMsgType
from switchboard.foundation.database import now
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.calls.dialing import build_media_url
from switchboard_offline.loopback.codec import LoopbackMedia, LoopbackStart, LoopbackStream, read_command, write_message

from tests.fixtures.app import LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually


async def test_a_repeated_handshake_has_the_call(live: LivePlatform) -> None:
    """A proxy, or an HTTP library, repeats the request if the connection was lost before the response."""
    call = await add_call(
        live.runtime,
        live.caller,
        now(),
        agent_id=UUID(live.agent_id),
        status="ringing",
        carrier_call_id=f"lb-1-{uuid4().hex}",
    )
    url = build_media_url(
        live.runtime.settings,
        live.runtime.keyring,
        carrier=call.carrier,
        organization_id=call.organization_id,
        call_id=call.id,
    )
    admission, start = (
        live.runtime.call(CallAdmission),
        LoopbackStart(LoopbackStream(str(call.carrier_call_id), "ls-1")),
    )
    await admission.reserve_place(call.id)
    async with ClientSession() as http:
        lost = await http.ws_connect(url)
        await lost.close()
        async with http.ws_connect(url) as socket:
            await socket.send_str(write_message(start))
            message = await socket.receive(timeout=20)
            assert message.type is WSMsgType.TEXT
            assert isinstance(read_command(message.data), LoopbackMedia)
            # A server reports its live calls; until then, the reservation holds the call's place.
            async with http.ws_connect(url) as second:
                await second.send_str(write_message(start))
                assert (await second.receive(timeout=20)).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
            assert await is_reserved(live, call.id), "only the socket that has the call releases its place"
    await eventually(lambda: is_reserved(live, call.id), lambda reserved: not reserved)


async def is_reserved(live: LivePlatform, call_id: UUID) -> bool:
    return await live.runtime.redis.zscore("{switchboard}:call_reservations", str(call_id)) is not None
