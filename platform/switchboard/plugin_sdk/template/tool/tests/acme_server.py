"""Acme's orders."""

from acme_vendor import Acme
from aiohttp import web

ORDERS = [{"number": "A-1", "status": "open"}, {"number": "A-2", "status": "closed"}]


def create_acme() -> Acme:
    return Acme([web.get("/orders", list_orders)])


async def list_orders(request: web.Request) -> web.Response:
    return web.json_response([order for order in ORDERS if order["status"] == request.query["status"]])
