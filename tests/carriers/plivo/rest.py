"""HTTP endpoints of the wire server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from tests.carriers.plivo.server import Given, PlivoServer
from tests.carriers.vendor import JsonBody, Refused

ACCOUNT = "/v1/Account/{account}"
Work = Callable[[str, Given], Awaitable[JsonBody | None]]
"""Executes a request: the id in its path, and its body or its query."""


class Rest:
    """HTTP in front of a `PlivoServer`."""

    def __init__(self, server: PlivoServer) -> None:
        self._server = server

    def application(self) -> web.Application:
        server, application = self._server, web.Application()
        operations: list[tuple[str, str, int, Work]] = [
            ("POST", "/Call/", 201, lambda _, given: server.create_call(given)),
            ("POST", "/Call/{id}/", 202, server.transfer_call),
            ("DELETE", "/Call/{id}/", 204, lambda call_id, _: server.hang_up_call(call_id)),
            ("POST", "/Call/{id}/DTMF/", 202, server.send_digits),
            ("POST", "/MultiPartyCall/name_{id}/Participant/", 201, server.add_participant),
            ("POST", "/Message/", 202, lambda _, given: server.create_message(given)),
            ("GET", "/Message/{id}/", 200, lambda text_id, _: server.get_message(text_id)),
            ("GET", "/PhoneNumber/", 200, lambda _, query: server.search_numbers(query)),
            ("POST", "/PhoneNumber/{id}/", 201, server.buy_number),
            ("GET", "/Number/{id}/", 200, lambda number, _: server.get_number(number)),
            ("POST", "/Number/{id}/", 202, server.update_number),
            ("DELETE", "/Number/{id}/", 204, lambda number, _: server.release_number(number)),
            ("GET", "/Application/{id}/", 200, lambda application_id, _: server.get_application(application_id)),
            ("POST", "/Application/{id}/", 202, server.update_application),
            ("POST", "/10dlc/Campaign/{id}/Number/", 200, lambda _, given: server.link_numbers(given)),
        ]
        for method, path, status, work in operations:
            application.router.add_route(method, ACCOUNT + path, partial(self._serve, status, work))
        application.router.add_route("GET", "/Account/{account}/Message/{message}/Media/{id}", self._media)
        return application

    async def _serve(self, status: int, work: Work, request: web.Request) -> web.StreamResponse:
        given: Given = await request.json() if request.can_read_body else dict(request.query)
        self._server.requests.append((request.method, request.path, given))

        async def answer() -> web.StreamResponse:
            body = await work(request.match_info.get("id", ""), given)
            return web.Response(status=status) if body is None else web.json_response(body, status=status)

        return await self._server.serve((request.method, request.path.strip("/").rpartition("/")[2]), request, answer)

    async def _media(self, request: web.Request) -> web.StreamResponse:
        """Redirect authorized requests to the stored file."""
        try:
            self._server.authenticate(request)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if request.match_info["id"] not in (*self._server.recordings, *self._server.redirects):
            return web.Response(status=404)
        raise web.HTTPTemporaryRedirect(self._server.storage_url(request.match_info["id"]))


@asynccontextmanager
async def serve_plivo() -> AsyncIterator[PlivoServer]:
    """A Plivo server on a free port."""
    server = PlivoServer()
    async with server.listening(Rest(server).application()):
        yield server
