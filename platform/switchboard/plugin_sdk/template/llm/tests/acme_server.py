"""Acme's models: a line of JSON for each event of an answer."""

import json
from typing import Any

from acme_vendor import Acme
from aiohttp import web


def create_acme() -> Acme:
    return Acme([web.get("/models", list_models), web.post("/chat", chat)])


async def list_models(_request: web.Request) -> web.Response:
    return web.json_response(["acme-1"])


async def chat(request: web.Request) -> web.StreamResponse:
    """Answer in three parts, or with a call of the first tool if there is one."""
    body = await request.json()
    if body["model"] != "acme-1":
        return web.Response(status=404, text=f"there is no model {body['model']}")
    events: list[dict[str, Any]] = [{"text": "Good "}, {"text": "morning."}]
    if body["schema"] is not None:
        events = [{"text": json.dumps({"summary": "Good morning."})}]
    if body["tools"]:
        events = [{"call": {"id": "call-1", "name": body["tools"][0]["name"], "arguments": {"city": "Paris"}}}]
    response = web.StreamResponse()
    await response.prepare(request)
    for event in [*events, {"model": "acme-1", "input_tokens": 12, "output_tokens": 4}]:
        await response.write(json.dumps(event).encode() + b"\n")
    return response
