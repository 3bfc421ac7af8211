"""Acme's copies of calls."""

from typing import Any

from acme_vendor import Acme
from aiohttp import web


class AcmeCalls(Acme):
    """Keeps the copies by their ids."""

    def __init__(self) -> None:
        super().__init__([web.put("/calls/{id}", self._put)])
        self.calls: dict[str, Any] = {}

    async def _put(self, request: web.Request) -> web.Response:
        self.calls[request.match_info["id"]] = await request.json()
        return web.json_response({})


def create_acme() -> AcmeCalls:
    return AcmeCalls()
