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
class Asked:
    """A request of the plugin."""

    path: Mapping[str, str]
    form: dict[str, str]
    events: tuple[str, ...]


Work = Callable[[Asked], Awaitable[JsonBody | None]]


class Rest:
    """HTTP in front of a `TwilioServer`."""

    def __init__(self, server: TwilioServer) -> None:
        self._server = server

    def application(self) -> web.Application:
        server, application = self._server, web.Application()
        operations: list[tuple[str, str, int, Work]] = [
            ("GET", "/2010-04-01/Accounts/{account}.json", 200, lambda _: server.account()),
            ("POST", ACCOUNT + "/Calls.json", 201, lambda asked: server.create_call(asked.form, asked.events)),
            (
                "POST",
                ACCOUNT + "/Calls/{sid}.json",
                200,
                lambda asked: server.update_call(asked.path["sid"], asked.form),
            ),
            ("POST", ACCOUNT + "/Messages.json", 201, lambda asked: server.create_message(asked.form)),
            (
                "GET",
                ACCOUNT + "/AvailablePhoneNumbers/{country}/{kind}.json",
                200,
                lambda asked: server.available(asked.path["country"], asked.path["kind"], asked.form),
            ),
            ("GET", ACCOUNT + "/IncomingPhoneNumbers.json", 200, lambda asked: server.list_numbers(asked.form)),
            ("POST", ACCOUNT + "/IncomingPhoneNumbers.json", 201, lambda asked: server.buy_number(asked.form)),
            (
                "POST",
                ACCOUNT + "/IncomingPhoneNumbers/{sid}.json",
                200,
                lambda asked: server.update_number(asked.path["sid"], asked.form),
            ),
            (
                "DELETE",
                ACCOUNT + "/IncomingPhoneNumbers/{sid}.json",
                204,
                lambda asked: server.release_number(asked.path["sid"]),
            ),
            ("GET", "/v1/PhoneNumbers/Countries/{country}", 200, lambda asked: server.prices(asked.path["country"])),
        ]
        for method, path, status, work in operations:
            application.router.add_route(method, path, partial(self._serve, status, work))
        application.router.add_route("GET", ACCOUNT + "/Recordings/{sid}.wav", self._recording)
        return application

    async def _serve(self, status: int, work: Work, request: web.Request) -> web.StreamResponse:
        pairs = parse_qsl((await request.read()).decode(), keep_blank_values=True) or list(request.query.items())
        self._server.requests.append((request.method, request.path, pairs))
        events = tuple(value for name, value in pairs if name == "StatusCallbackEvent")

        async def answer() -> web.StreamResponse:
            body = await work(Asked(request.match_info, dict(pairs), events))
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
        if request.match_info["sid"] not in self._server.recordings:
            return web.Response(status=404)
        raise web.HTTPTemporaryRedirect(self._server.storage_url(request.match_info["sid"]))


@asynccontextmanager
async def listening() -> AsyncIterator[TwilioServer]:
    """A Twilio server on a free port."""
    server = TwilioServer()
    async with server.listening(Rest(server).application()):
        yield server
