"""Every place of the API that takes an id, with each id of the other organization."""

import re
from uuid import uuid4

from tests.attack.http_client import Answer
from tests.attack.oauth_client import Application
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited
from tests.fixtures.openapi_places import Place, find_places

NOT_TRIED = {
    ("POST", "/v1/phone-numbers/enter", "inbound_agent_id"): "the simulated carrier sells numbers, so none is entered",
    ("POST", "/v1/appointments", "contact_id"): "the example has a phone number in its place, and no free time",
}
"""Places whose id no request of these attacks gets as far as: method, path, and name, with the reason."""


def normalize(answer: Answer, key: str) -> tuple[int, str]:
    """Strip the requested id, and everything that differs from request to request, from a response."""
    return answer.status, re.sub(r'"request_id":\s*"[^"]*"', "", answer.text.replace(key, "ID"))


def is_looked_up(place: Place, answer: Answer) -> bool:
    """Return whether a response shows that the id was looked up and not found: a body that is refused for another
    field, or a state that allows nothing, says nothing about ids, and is the same for each.
    """
    if place.location == "body":
        faults = [error["field"] for error in answer.json.get("errors", [])] if answer.status == 422 else []
        return any(fault.partition(".")[0] == place.name for fault in faults)
    return answer.status == 404 or (place.location == "query" and answer.status == 200)


async def attack_foreign_ids(scene: Scene, result: AttackResult) -> None:
    """Compare each response with the one to an id that does not exist: a difference is an oracle.

    The attacker is an application that acts for an owner with every scope: some operations take no API key.
    """
    foreign = [ids[0] for ids in scene.victim.ids.values()]
    everything = " ".join(sorted({operation.scope for operation in scene.stranger.operations if operation.scope}))
    application = Application(scene, scene.credentials.application)
    tokens = await application.obtain_tokens(scene.stranger.owner, scope=everything)
    attacker = scene.stranger.api.with_token(tokens["access_token"])

    async def send(place: Place, key: str) -> Answer:
        path, body = place.fill(key, scene.stranger.find_id)
        return await attacker.send(place.operation.method, path, body)

    async def attack_place(place: Place) -> None:
        method, path = place.operation.method, place.operation.path
        unknown = str(uuid4())
        answer = await send(place, unknown)
        expected = normalize(answer, unknown)
        if reason := NOT_TRIED.get((method, path, place.name)):
            result.left_out.append(f"{method} {path} with {place.name}: {reason}")
        else:
            looked_up = is_looked_up(place, answer)
            result.check(looked_up, f"{method} {path}: the id in {place.name} is not looked up", answer)
        for key in foreign:
            answer = await send(place, key)
            request = f"{method} {path} with {key} as {place.name}"
            result.check(normalize(answer, key) == expected and answer.status < 500, request, answer)

    # Deletions come last: they would hide that an operation gives away what is deleted.
    places = find_places(scene.api)
    for deletes in (False, True):
        await gather_limited(attack_place(place) for place in places if (place.operation.method == "DELETE") is deletes)
