"""Acme's calendars, in memory: one calendar for each user."""

from datetime import datetime
from typing import Any

from acme_vendor import Acme
from aiohttp import web


def create_acme() -> Acme:
    events: dict[str, dict[str, Any]] = {}

    async def list_calendars(request: web.Request) -> web.Response:
        user = request.match_info["user"]
        return web.json_response([{"id": user, "name": f"Calendar of {user}", "time_zone": "Europe/Berlin"}])

    async def list_busy(request: web.Request) -> web.Response:
        begin, end = (datetime.fromisoformat(request.query[name]) for name in ("from", "to"))
        rows = [
            row
            for row in events.values()
            if datetime.fromisoformat(row["from"]) < end and datetime.fromisoformat(row["to"]) > begin
        ]
        return web.json_response(rows)

    async def create(request: web.Request) -> web.Response:
        row = await request.json()
        return web.json_response(events.setdefault(row["id"], {**row, "version": "1"}))

    async def find(request: web.Request) -> web.Response:
        return web.json_response(get(request))

    async def move(request: web.Request) -> web.Response:
        row = get(request)
        if request.headers.get("If-Match") != row["version"]:
            raise web.HTTPPreconditionFailed(text="the event was changed")
        row |= {**await request.json(), "version": str(int(row["version"]) + 1)}
        return web.json_response(row)

    async def cancel(request: web.Request) -> web.Response:
        events.pop(request.match_info["id"], None)
        return web.json_response({})

    def get(request: web.Request) -> dict[str, Any]:
        if (row := events.get(request.match_info["id"])) is None:
            raise web.HTTPNotFound(text="there is no such event")
        return row

    path = "/calendars/{name}/events"
    return Acme(
        [
            web.get("/users/{user}/calendars", list_calendars),
            web.get("/calendars/{name}/busy", list_busy),
            web.post(path, create),
            web.get(path + "/{id}", find),
            web.patch(path + "/{id}", move),
            web.delete(path + "/{id}", cancel),
        ]
    )
