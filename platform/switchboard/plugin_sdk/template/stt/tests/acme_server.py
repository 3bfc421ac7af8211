"""Acme's transcription: it hears "hello" in everything that is not silence."""

from acme_vendor import Acme
from aiohttp import WSMsgType, web


def create_acme() -> Acme:
    return Acme([web.get("/transcribe", transcribe)])


async def transcribe(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    loud = False
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            loud = loud or any(message.data)
        else:
            await socket.send_json({"text": "hello" if loud else "", "final": True, "finalized": True})
            loud = False
    return socket
