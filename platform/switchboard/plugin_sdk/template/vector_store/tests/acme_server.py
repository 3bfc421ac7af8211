"""Acme's collections, in memory."""

import operator
from collections import defaultdict
from typing import Any

from acme_vendor import Acme
from aiohttp import web

Row = dict[str, Any]


def create_acme() -> Acme:
    collections: dict[str, list[Row]] = defaultdict(list)

    async def put(request: web.Request) -> web.Response:
        name, rows = request.match_info["name"], await request.json()
        new = {(row["document"], row["model"]) for row in rows}
        kept = [row for row in collections[name] if (row["document"], row["model"]) not in new]
        collections[name] = kept + rows
        return web.json_response({})

    async def search(request: web.Request) -> web.Response:
        query = await request.json()
        rows = [
            {**row, "score": sum(map(operator.mul, row["vector"], query["vector"]))}
            for row in collections[request.match_info["name"]]
            if row["model"] == query["model"] and (query["bases"] is None or row["base"] in query["bases"])
        ]
        return web.json_response(sorted(rows, key=lambda row: -row["score"])[: query["limit"]])

    async def delete(request: web.Request) -> web.Response:
        name, conditions = request.match_info["name"], request.query.items()
        collections[name] = [row for row in collections[name] if any(row[key] != value for key, value in conditions)]
        return web.json_response({})

    path = "/collections/{name}"
    return Acme([web.put(path, put), web.post(f"{path}/search", search), web.delete(path, delete)])
