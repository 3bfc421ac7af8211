"""Common parts of Acme's API: the key, and faults that a test asks for."""

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web
from pydantic import HttpUrl, SecretStr
from switchboard_acme.client import AcmeSettings

KEY = "the key of the tests"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_settings(address: str) -> AcmeSettings:
    """Create the settings for Acme at an address."""
    return AcmeSettings(api_key=SecretStr(KEY), base_url=HttpUrl(address))


class Acme:
    """Acme, as its documentation describes it. `fault` is the status of every response, if it is not 0."""

    def __init__(self, routes: Iterable[web.AbstractRouteDef]) -> None:
        self.fault = 0
        self.application = web.Application(middlewares=[self._guard])
        self.application.add_routes([web.get("/account", self._describe_account), *routes])

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.Response(status=401, text="there is no such key")
        if self.fault:
            return web.Response(status=self.fault, text="out of order")
        return await handler(request)

    async def _describe_account(self, _request: web.Request) -> web.Response:
        return web.json_response({"name": "Tests"})
