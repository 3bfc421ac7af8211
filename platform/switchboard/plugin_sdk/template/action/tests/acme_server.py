"""Acme's notes."""

from acme_vendor import Acme
from aiohttp import web


def create_acme() -> Acme:
    notes: dict[str, int] = {}

    async def write(request: web.Request) -> web.Response:
        number = notes.setdefault(request.headers["Idempotency-Key"], len(notes) + 1)
        return web.json_response({"id": f"note-{number}"}, status=201)

    return Acme([web.post("/notes", write)])
