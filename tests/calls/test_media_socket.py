"""The socket that a carrier opens for a call's audio."""

from uuid import UUID, uuid4

from aiohttp import ClientSession, WSMsgType
from switchboard.foundation.database import now
from switchboard.resources.calls.callback_urls import build_media_url
from switchboard_offline.loopback.codec import LoopbackMedia, LoopbackStart, LoopbackStream, read_command, write_message

from tests.fixtures.app import LivePlatform
from tests.fixtures.calls import add_call


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
    async with ClientSession() as http:
        lost = await http.ws_connect(url)
        await lost.close()
        async with http.ws_connect(url) as socket:
            await socket.send_str(write_message(LoopbackStart(LoopbackStream(str(call.carrier_call_id), "ls-1"))))
            message = await socket.receive(timeout=20)
            assert message.type is WSMsgType.TEXT
            assert isinstance(read_command(message.data), LoopbackMedia)
