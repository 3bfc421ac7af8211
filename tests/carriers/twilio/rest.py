"""HTTP endpoints of the wire server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl

from aiohttp import web

from tests.carriers.twilio.server import TwilioServer
from tests.carriers.vendor import JsonBody, Refused

ACCOUNT = "/2010-04-01/Accounts/{account}"


@dataclass(frozen=True, slots=True)
class PluginRequest:
    """A request of the plugin."""

    path: Mapping[str, str]
    form: dict[str, str]
    events: tuple[str, ...]


Work = Callable[[PluginRequest], Awaitable[JsonBody | None]]


class Rest:
    """HTTP in front of a `TwilioServer`."""

    def __init__(self, server: TwilioServer) -> None:
        self._server = server

    def application(self) -> web.Application:
        server, application = self._server, web.Application()
        operations: list[tuple[str, str, int, Work]] = [
            ("GET", "/2010-04-01/Accounts/{account}.json", 200, lambda _: server.get_account()),
            ("POST", ACCOUNT + "/Calls.json", 201, lambda request: server.create_call(request.form, request.events)),
            (
                "POST",
                ACCOUNT + "/Calls/{sid}.json",
                200,
                lambda request: server.update_call(request.path["sid"], request.form),
            ),
            ("POST", ACCOUNT + "/Messages.json", 201, lambda request: server.create_message(request.form)),
            ("GET", ACCOUNT + "/Messages/{sid}.json", 200, lambda request: server.get_message(request.path["sid"])),
            (
                "GET",
                ACCOUNT + "/AvailablePhoneNumbers/{country}/{kind}.json",
                200,
                lambda request: server.search_numbers(request.path["country"], request.path["kind"], request.form),
            ),
            ("GET", ACCOUNT + "/IncomingPhoneNumbers.json", 200, lambda request: server.list_numbers(request.form)),
            ("POST", ACCOUNT + "/IncomingPhoneNumbers.json", 201, lambda request: server.buy_number(request.form)),
            (
                "POST",
                ACCOUNT + "/IncomingPhoneNumbers/{sid}.json",
                200,
                lambda request: server.update_number(request.path["sid"], request.form),
            ),
            (
                "DELETE",
                ACCOUNT + "/IncomingPhoneNumbers/{sid}.json",
                204,
                lambda request: server.release_number(request.path["sid"]),
            ),
            (
                "POST",
                "/v1/Services/{service}/PhoneNumbers",
                201,
                lambda request: server.add_sender(request.path["service"], request.form["PhoneNumberSid"]),
            ),
            (
                "GET",
                "/v1/PhoneNumbers/Countries/{country}",
                200,
                lambda request: server.list_prices(request.path["country"]),
            ),
        ]
        for method, path, status, work in operations:
            application.router.add_route(method, path, partial(self._serve, status, work))
        application.router.add_route("GET", ACCOUNT + "/Recordings/{sid}.wav", self._recording)
        application.router.add_route("GET", ACCOUNT + "/Messages/{message}/Media/{sid}", self._recording)
        return application

    async def _serve(self, status: int, work: Work, request: web.Request) -> web.StreamResponse:
        pairs = parse_qsl((await request.read()).decode(), keep_blank_values=True) or list(request.query.items())
        self._server.requests.append((request.method, request.path, pairs))
        events = tuple(value for name, value in pairs if name == "StatusCallbackEvent")

        async def answer() -> web.StreamResponse:
            body = await work(PluginRequest(request.match_info, dict(pairs), events))
            return web.Response(status=status) if body is None else web.json_response(body, status=status)

        return await self._server.serve(
            (request.method, request.path.rpartition("/")[2].removesuffix(".json")), request, answer
        )

    async def _recording(self, request: web.Request) -> web.StreamResponse:
        """Redirect authorized requests to the stored file."""
        try:
            self._server.authenticate(request)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if request.match_info["sid"] not in (*self._server.recordings, *self._server.redirects):
            return web.Response(status=404)
        raise web.HTTPTemporaryRedirect(self._server.storage_url(request.match_info["sid"]))


@asynccontextmanager
async def serve_twilio() -> AsyncIterator[TwilioServer]:
    """A Twilio server on a free port."""
    server = TwilioServer()
    async with server.listening(Rest(server).application()):
        yield server
