"""Acme's calls, text messages, and phone numbers, in memory."""

from itertools import count

from acme_vendor import Acme
from aiohttp import web

TAKEN = "+12125550199"


class AcmeCarrier(Acme):
    """The carrier, with its calls by id and its numbers. `moved_to` is where its moved file is."""

    moved_to = ""

    def __init__(self) -> None:
        super().__init__(
            [
                web.post("/calls", self._place_call),
                web.get("/calls", self._list_calls),
                web.delete("/calls/{id}", self._end_call),
                web.post("/calls/{id}/transfer", self._change_call),
                web.post("/calls/{id}/digits", self._change_call),
                web.post("/messages", self._send_message),
                web.get("/available-numbers", self._list_available),
                web.post("/numbers", self._buy),
                web.delete("/numbers/{id}", self._release),
                web.get("/files/moved", self._redirect),
            ]
        )
        self._ids = count(1)
        self._calls: dict[str, str] = {}
        self._numbers: dict[str, str] = {}

    async def _place_call(self, request: web.Request) -> web.Response:
        number = f"call-{next(self._ids)}"
        self._calls[number] = (await request.json())["reference"]
        return web.json_response({"id": number}, status=201)

    async def _list_calls(self, request: web.Request) -> web.Response:
        wanted = request.query["reference"]
        return web.json_response([{"id": number} for number, known in self._calls.items() if known == wanted])

    async def _end_call(self, request: web.Request) -> web.Response:
        known = self._calls.pop(request.match_info["id"], None)
        return web.json_response({}) if known else web.Response(status=404, text="there is no such call")

    async def _change_call(self, request: web.Request) -> web.Response:
        known = request.match_info["id"] in self._calls
        return web.json_response({}) if known else web.Response(status=404, text="there is no such call")

    async def _send_message(self, _request: web.Request) -> web.Response:
        return web.json_response({"id": f"message-{next(self._ids)}"}, status=201)

    async def _list_available(self, request: web.Request) -> web.Response:
        found = [{"number": f"+1212555010{last}"} for last in range(10)]
        return web.json_response(found[: int(request.query["limit"])])

    async def _buy(self, request: web.Request) -> web.Response:
        wanted = (await request.json())["number"]
        if wanted == TAKEN:
            return web.Response(status=409, text="the number is taken")
        return web.json_response({"id": self._numbers.setdefault(wanted, f"number-{next(self._ids)}")})

    async def _release(self, request: web.Request) -> web.Response:
        known = [number for number, own in self._numbers.items() if own == request.match_info["id"]]
        for number in known:
            del self._numbers[number]
        return web.json_response({}, status=200 if known else 404)

    async def _redirect(self, _request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(self.moved_to)


def create_acme() -> Acme:
    return AcmeCarrier()
