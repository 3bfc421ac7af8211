"""HTTP endpoints of the wire server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from switchboard_telephony_telnyx.transport import load_sdk

from tests.carriers.telnyx.phone_numbers import create_not_found
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.vendor import JsonBody


@dataclass(frozen=True, slots=True)
class PluginRequest:
    """A request of the plugin."""

    path: Mapping[str, str]
    body: JsonBody
    query: Mapping[str, str]


Work = Callable[[PluginRequest], Awaitable[JsonBody]]


class Rest:
    """HTTP in front of a `TelnyxServer`."""

    def __init__(self, server: TelnyxServer) -> None:
        self._server = server

    def application(self) -> web.Application:
        server, application = self._server, web.Application()
        operations: list[tuple[str, str, Work]] = [
            ("POST", "/calls", lambda request: server.dial(request.body)),
            (
                "POST",
                "/calls/{id}/actions/{action}",
                lambda request: server.command(request.path["id"], request.path["action"], request.body),
            ),
            ("GET", "/connections/{id}/active_calls", lambda request: server.active_calls(request.path["id"])),
            ("POST", "/messages", lambda request: server.send_message(request.body)),
            ("GET", "/messages/{id}", lambda request: _get_message(server, request.path["id"])),
            ("GET", "/available_phone_numbers", lambda request: server.search_numbers(request.query)),
            ("GET", "/phone_numbers", lambda request: server.list_numbers(request.query)),
            ("PATCH", "/phone_numbers/{id}", lambda request: server.update_number(request.path["id"], request.body)),
            (
                "PATCH",
                "/phone_numbers/{id}/messaging",
                lambda request: server.update_texting(request.path["id"], request.body),
            ),
            ("DELETE", "/phone_numbers/{id}", lambda request: server.release_number(request.path["id"])),
            ("GET", "/number_orders", lambda request: server.list_orders(request.query)),
            ("POST", "/number_orders", lambda request: server.order_number(request.body)),
            ("POST", "/10dlc/phone_number_campaigns", lambda request: server.assign_campaign(request.body)),
            (
                "GET",
                "/10dlc/phone_number_campaigns/{number}",
                lambda request: server.find_campaign(request.path["number"]),
            ),
            ("GET", "/recordings", lambda request: server.list_recordings(request.query)),
            ("POST", "/telephony_credentials", lambda request: server.create_credential(request.body)),
            ("GET", "/telephony_credentials", lambda request: server.list_credentials(request.query)),
            (
                "PATCH",
                "/telephony_credentials/{id}",
                lambda request: server.update_credential(request.path["id"], request.body),
            ),
            ("DELETE", "/telephony_credentials/{id}", lambda request: server.delete_credential(request.path["id"])),
            ("GET", "/call_control_applications/{id}", self._application),
            ("PATCH", "/call_control_applications/{id}", lambda request: server.update_application(request.body)),
            ("GET", "/messaging_profiles/{id}", self._profile),
            ("PATCH", "/messaging_profiles/{id}", lambda request: server.update_profile(request.body)),
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
            return web.json_response(await work(PluginRequest(request.match_info, body, request.query)))

        return await self._server.serve((request.method, request.path.rpartition("/")[2]), request, answer)

    async def _application(self, request: PluginRequest) -> JsonBody:
        if request.path["id"] != self._server.connection_id:
            raise create_not_found()
        return {"data": self._server.application}

    async def _profile(self, request: PluginRequest) -> JsonBody:
        if request.path["id"] != self._server.profile_id:
            raise create_not_found()
        return {"data": self._server.profile}

    async def _token(self, request: web.Request) -> web.StreamResponse:
        """Return a JWT, as plain text."""
        self._server.authenticate(request)
        assert request.match_info["id"] in self._server.credentials
        return web.Response(text="eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJ4In0.c2ln", status=201)


@asynccontextmanager
async def serve_telnyx() -> AsyncIterator[TelnyxServer]:
    """A Telnyx server on a free port.

    The SDK is imported before: on a busy machine that takes longer than a provider may take to open.
    """
    await asyncio.to_thread(load_sdk)
    server = TelnyxServer()
    async with server.listening(Rest(server).application()):
        yield server


async def _get_message(server: TelnyxServer, text_id: str) -> JsonBody:
    if text_id not in server.texts:
        raise create_not_found()
    return {"data": {"id": text_id, "record_type": "message", "direction": "outbound", **server.texts[text_id]}}
