"""Acme's calls, text messages, and phone numbers, in memory."""

from itertools import count

from acme_vendor import Acme
from aiohttp import web

TAKEN = "+12125550199"


def create_acme() -> Acme:
    """Create the vendor."""
    ids, calls, numbers = count(1), dict[str, str](), dict[str, str]()

    async def place_call(request: web.Request) -> web.Response:
        number = f"call-{next(ids)}"
        calls[number] = (await request.json())["reference"]
        return web.json_response({"id": number}, status=201)

    async def list_calls(request: web.Request) -> web.Response:
        wanted = request.query["reference"]
        return web.json_response([{"id": number} for number, reference in calls.items() if reference == wanted])

    async def change_call(request: web.Request) -> web.Response:
        known = calls if request.method != "DELETE" else {number: calls.pop(number) for number in [*calls]}
        if request.match_info["id"] not in known:
            return web.Response(status=404, text="there is no such call")
        return web.json_response({})

    async def send_message(_request: web.Request) -> web.Response:
        return web.json_response({"id": f"message-{next(ids)}"}, status=201)

    async def list_available(request: web.Request) -> web.Response:
        found = [{"number": f"+1212555010{last}"} for last in range(10)]
        return web.json_response(found[: int(request.query["limit"])])

    async def buy(request: web.Request) -> web.Response:
        wanted = (await request.json())["number"]
        if wanted == TAKEN:
            return web.Response(status=409, text="the number is taken")
        return web.json_response({"id": numbers.setdefault(wanted, f"number-{next(ids)}")})

    async def release(request: web.Request) -> web.Response:
        known = [number for number, own in numbers.items() if own == request.match_info["id"]]
        for number in known:
            del numbers[number]
        return web.json_response({}, status=200 if known else 404)

    return Acme(
        [
            web.post("/calls", place_call),
            web.get("/calls", list_calls),
            web.delete("/calls/{id}", change_call),
            web.post("/calls/{id}/transfer", change_call),
            web.post("/calls/{id}/digits", change_call),
            web.post("/messages", send_message),
            web.get("/available-numbers", list_available),
            web.post("/numbers", buy),
            web.delete("/numbers/{id}", release),
        ]
    )
