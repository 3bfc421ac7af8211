"""Acme's embeddings: the number of each letter."""

from acme_vendor import Acme
from aiohttp import web

LETTERS = "abcdefghijklmnopqrstuvwxyz "


def create_acme() -> Acme:
    return Acme([web.post("/embeddings", embed)])


async def embed(request: web.Request) -> web.Response:
    body = await request.json()
    vectors = [[text.lower().count(letter) for letter in LETTERS] for text in body["texts"]]
    tokens = sum(len(text.split()) for text in body["texts"])
    return web.json_response({"model": body["model"], "vectors": vectors, "tokens": tokens})
