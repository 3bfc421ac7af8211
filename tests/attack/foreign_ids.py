"""Every place of the API that takes an id, with each id of the other organization."""

import re
from uuid import uuid4

from tests.attack.http_client import Answer
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited
from tests.fixtures.openapi_places import Place, find_places


def normalize(answer: Answer, key: str) -> tuple[int, str]:
    """Strip the requested id, and everything that differs from request to request, from a response."""
    return answer.status, re.sub(r'"request_id":\s*"[^"]*"', "", answer.text.replace(key, "ID"))


async def attack_foreign_ids(scene: Scene, result: AttackResult) -> None:
    """Compare each response with the one to an id that does not exist: a difference is an oracle."""
    foreign = [ids[0] for ids in scene.victim.ids.values()]

    async def send(place: Place, key: str) -> Answer:
        path, body = place.fill(key, scene.stranger.find_id)
        return await scene.stranger.api.send(place.operation.method, path, body)

    async def attack_place(place: Place) -> None:
        unknown = str(uuid4())
        expected = normalize(await send(place, unknown), unknown)
        for key in foreign:
            answer = await send(place, key)
            request = f"{place.operation.method} {place.operation.path} with {key} as {place.name}"
            result.check(normalize(answer, key) == expected and answer.status < 500, request, answer)

    # Deletions come last: they would hide that an operation gives away what is deleted.
    places = find_places(scene.api)
    for deletes in (False, True):
        await gather_limited(attack_place(place) for place in places if (place.operation.method == "DELETE") is deletes)
