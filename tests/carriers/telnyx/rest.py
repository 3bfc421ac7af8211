"""HTTP endpoints of the wire server."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from tests.carriers.telnyx.phone_numbers import not_found
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.vendor import JsonBody


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the plugin."""

    path: Mapping[str, str]
    body: JsonBody
    query: Mapping[str, str]


Work = Callable[[Asked], Awaitable[JsonBody]]


class Rest:
    """HTTP in front of a `TelnyxServer`."""

    def __init__(self, server: TelnyxServer) -> None:
        self._server = server

    def application(self) -> web.Application:
        server, application = self._server, web.Application()
        operations: list[tuple[str, str, Work]] = [
            ("POST", "/calls", lambda asked: server.dial(asked.body)),
            (
                "POST",
                "/calls/{id}/actions/{action}",
                lambda asked: server.command(asked.path["id"], asked.path["action"], asked.body),
            ),
            ("GET", "/connections/{id}/active_calls", lambda asked: server.active_calls(asked.path["id"])),
            ("POST", "/messages", lambda asked: server.send_message(asked.body)),
            ("GET", "/available_phone_numbers", lambda asked: server.available(asked.query)),
            ("GET", "/phone_numbers", lambda asked: server.list_numbers(asked.query)),
            ("PATCH", "/phone_numbers/{id}", lambda asked: server.update_number(asked.path["id"], asked.body)),
            (
                "PATCH",
                "/phone_numbers/{id}/messaging",
                lambda asked: server.update_texting(asked.path["id"], asked.body),
            ),
            ("DELETE", "/phone_numbers/{id}", lambda asked: server.release_number(asked.path["id"])),
            ("GET", "/number_orders", lambda asked: server.list_orders(asked.query)),
            ("POST", "/number_orders", lambda asked: server.order(asked.body)),
            ("GET", "/recordings", lambda asked: server.list_recordings(asked.query)),
            ("POST", "/telephony_credentials", lambda asked: server.create_credential(asked.body)),
            ("GET", "/call_control_applications/{id}", self._application),
            ("PATCH", "/call_control_applications/{id}", lambda asked: server.update_application(asked.body)),
            ("GET", "/messaging_profiles/{id}", self._profile),
            ("PATCH", "/messaging_profiles/{id}", lambda asked: server.update_profile(asked.body)),
        ]
        for method, path, work in operations:
            application.router.add_route(method, f"/v2{path}", partial(self._serve, work))
        application.router.add_route("POST", "/v2/telephony_credentials/{id}/token", self._token)
        return application

    async def _serve(self, work: Work, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        body: JsonBody = json.loads(sent) if sent else {}
        self._server.requests.append((request.method, request.path, body or dict(request.query)))

        async def answer() -> web.StreamResponse:
            return web.json_response(await work(Asked(request.match_info, body, request.query)))

        return await self._server.serve((request.method, request.path.rpartition("/")[2]), request, answer)

    async def _application(self, asked: Asked) -> JsonBody:
        if asked.path["id"] != self._server.connection_id:
            raise not_found()
        return {"data": self._server.application}

    async def _profile(self, asked: Asked) -> JsonBody:
        if asked.path["id"] != self._server.profile_id:
            raise not_found()
        return {"data": self._server.profile}

    async def _token(self, request: web.Request) -> web.StreamResponse:
        """Return a JWT, as plain text."""
        self._server.authenticate(request)
        assert request.match_info["id"] in self._server.credentials
        return web.Response(text="eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJ4In0.c2ln", status=201)


@asynccontextmanager
async def listening() -> AsyncIterator[TelnyxServer]:
    """A Telnyx server on a free port."""
    server = TelnyxServer()
    async with server.listening(Rest(server).application()):
        yield server
