"""Acme's judgment of turns: a sentence without an end goes on."""

from acme_vendor import Acme
from aiohttp import web


def create_acme() -> Acme:
    return Acme([web.post("/turns", judge)])


async def judge(request: web.Request) -> web.Response:
    body = await request.json()
    return web.json_response({"probability": 0.2 if body["text"].endswith((" and", " the", " to")) else 0.9})
