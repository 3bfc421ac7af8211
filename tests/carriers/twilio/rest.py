"""The wire server's addresses, credentials, planned failures and files."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl

from aiohttp import encode_basic_auth, web

from tests.carriers.twilio.server import JsonBody, Refused, TwilioServer

NEVER = -1
"""A planned failure: no answer."""
GARBLED = -3
"""A planned failure: the work is done, and a page of somebody else's comes back."""
DONE = -2
"""A planned failure: 500, though the work is done."""
BROKEN = 0
"""A planned failure: the connection breaks once the work is done."""
ACCOUNT = "/2010-04-01/Accounts/{account}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the plugin's."""

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
            ("POST", ACCOUNT + "/Calls/{sid}.json", 200, lambda asked: server.update_call(asked.path["sid"], asked.form)),
            ("POST", ACCOUNT + "/Messages.json", 201, lambda asked: server.create_message(asked.form)),
            (
                "GET", ACCOUNT + "/AvailablePhoneNumbers/{country}/{kind}.json", 200,
                lambda asked: server.available(asked.path["country"], asked.path["kind"], asked.form),
            ),
            ("GET", ACCOUNT + "/IncomingPhoneNumbers.json", 200, lambda asked: server.list_numbers(asked.form)),
            ("POST", ACCOUNT + "/IncomingPhoneNumbers.json", 201, lambda asked: server.buy_number(asked.form)),
            ("POST", ACCOUNT + "/IncomingPhoneNumbers/{sid}.json", 200, lambda asked: server.update_number(asked.path["sid"], asked.form)),
            ("DELETE", ACCOUNT + "/IncomingPhoneNumbers/{sid}.json", 204, lambda asked: server.release_number(asked.path["sid"])),
            ("GET", "/v1/PhoneNumbers/Countries/{country}", 200, lambda asked: server.prices(asked.path["country"])),
        ]  # fmt: skip
        for method, path, status, work in operations:
            application.router.add_route(method, path, partial(self._serve, status, work))
        application.router.add_route("GET", ACCOUNT + "/Recordings/{sid}.wav", self._recording)
        application.router.add_route("GET", "/storage/{sid}", self._storage)
        return application

    async def _serve(self, status: int, work: Work, request: web.Request) -> web.StreamResponse:
        pairs = parse_qsl((await request.read()).decode(), keep_blank_values=True) or list(request.query.items())
        self._server.requests.append((request.method, request.path, pairs))
        planned = self._server.failures[request.method, request.path.rpartition("/")[2].removesuffix(".json")]
        failure = planned.pop(0) if planned else None
        try:
            self._authenticate(request)
            if failure == NEVER:
                await self._server.closing.wait()
            elif failure and failure not in (DONE, GARBLED):
                raise Refused(failure, 20429 if failure == 429 else 20500, "Too Many Requests" if failure == 429 else "An internal server error")
            events = tuple(value for name, value in pairs if name == "StatusCallbackEvent")
            body = await work(Asked(request.match_info, dict(pairs), events))
            if failure == GARBLED:
                return web.Response(text="<html>Welcome</html>", content_type="text/html", status=status)
            if failure == DONE:
                raise Refused(500, 20500, "An internal server error")
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if failure == BROKEN and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status) if body is None else web.json_response(body, status=status)

    def _authenticate(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != encode_basic_auth(self._server.account_sid, self._server.auth_token):
            raise Refused(401, 20003, "Authenticate")

    async def _recording(self, request: web.Request) -> web.StreamResponse:
        """Twilio shows where the file is kept, to those who may know."""
        try:
            self._authenticate(request)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if request.match_info["sid"] not in self._server.recordings:
            return web.Response(status=404)
        port = self._server.address.rpartition(":")[2]
        raise web.HTTPTemporaryRedirect(f"http://localhost:{port}/storage/{request.match_info['sid']}")

    async def _storage(self, request: web.Request) -> web.StreamResponse:
        assert "Authorization" not in request.headers, "the credential went to another host"
        whole = self._server.recordings[request.match_info["sid"]]
        part = request.http_range
        if part.start is None and part.stop is None:
            return web.Response(body=whole, content_type="audio/x-wav")
        start, stop, _ = part.indices(len(whole))
        headers = {"Content-Range": f"bytes {start}-{stop - 1}/{len(whole)}"}
        return web.Response(body=whole[start:stop], status=206, headers=headers, content_type="audio/x-wav")


@asynccontextmanager
async def listening() -> AsyncIterator[TwilioServer]:
    """A Twilio on a free port."""
    server = TwilioServer()
    runner = web.AppRunner(Rest(server).application(), access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await server.open(f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield server
    finally:
        await server.close()
        await runner.cleanup()
