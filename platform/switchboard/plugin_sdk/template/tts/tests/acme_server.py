"""Acme's voice: a beep for each word, as 16-bit PCM at 8000 samples per second."""

import math
import struct

from acme_vendor import Acme
from aiohttp import web

BEEP_SECONDS = 0.3
RATE = 8000


def create_acme() -> Acme:
    return Acme([web.get("/voices", list_voices), web.post("/speech", speak)])


async def list_voices(_request: web.Request) -> web.Response:
    return web.json_response([{"id": "ada", "name": "Ada", "language": "en-US"}])


async def speak(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if body["voice"] != "ada":
        return web.Response(status=404, text=f"there is no voice {body['voice']}")
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in body["text"].split():
        await response.write(beep(BEEP_SECONDS / body["speed"]))
    return response


def beep(seconds: float) -> bytes:
    samples = [int(9000 * math.sin(2 * math.pi * 440 * index / RATE)) for index in range(int(seconds * RATE))]
    return struct.pack(f"<{len(samples)}h", *samples)
