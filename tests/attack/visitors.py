"""Website widgets: pages of other sites, tokens that are used for other calls, and conversations without end."""

import json

from switchboard.foundation.web.openapi import Json

from tests.attack.http_client import Answer, HttpClient
from tests.attack.organization import PERSON, Organization
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.attack.sockets import SocketAttack
from tests.fixtures.eventually import eventually

SITE, EVIL = "https://www.example.com", "https://evil.example.com"
MAX_CONVERSATIONS = 100


async def create_widget(organization: Organization, name: str) -> Json:
    """Create a widget that shows nobody the organization's word, which the name of its agent has."""
    shown = {"title": name, "greeting": "Hello.", "allowed_origins": [SITE], "max_sessions_per_minute_per_address": 20}
    widget = {"name": name, "agent_id": organization.ids["agents"][0], **shown}
    made: Json = (await organization.api.post("/v1/widgets", widget)).json
    return made


async def attack_widgets(scene: Scene, result: AttackResult) -> None:
    """Attack the widgets of the stranger, because the rows of the scene's victim must not change."""
    target, nobody = scene.stranger, scene.nobody
    widget, other = await create_widget(target, "One"), await create_widget(target, "Two")
    path = f"/widget/{widget['public_key']}"
    framed = await nobody.send("GET", f"{path}/frame", headers={"Referer": f"{EVIL}/"})
    result.check(framed.status == 403, "a frame on another site", framed)
    allowed = await nobody.send("GET", f"{path}/frame", headers={"Referer": f"{SITE}/"})
    policy = allowed.headers.get("Content-Security-Policy", "")
    result.check(f"frame-ancestors 'self' {SITE}" in policy and EVIL not in policy, "the frame's policy", policy)
    for origin in (EVIL, SITE, "null"):
        for kind in ("messages", "calls"):
            sent = await nobody.send("POST", f"{path}/{kind}", {"text": "Hello"}, headers={"Origin": origin})
            refused = sent.status in (403, 429) and "Access-Control-Allow-Origin" not in sent.headers
            result.check(refused, f"POST widget {kind} from {origin}", sent)
    await _attack_call(scene, target, path, result)
    await _attack_session(nobody, path, f"/widget/{other['public_key']}", result)
    demo = await nobody.get(f"/demo/{widget['public_key']}")
    result.check(demo.status == 404, "a demo page that is off", demo)
    answers = [await _write(nobody, path, wait=False) for _ in range(MAX_CONVERSATIONS)]
    result.check(429 in {answer.status for answer in answers}, "widget conversations without end", answers[-1])
    for made in (widget, other):
        await target.api.send("DELETE", f"/v1/widgets/{made['id']}")


async def _write(nobody: HttpClient, path: str, *, wait: bool = True) -> Answer:
    return await nobody.send("POST", f"{path}/messages", {"text": "Hello"}, wait=wait)


async def _attack_call(scene: Scene, target: Organization, path: str, result: AttackResult) -> None:
    """Dial a phone number with a visitor's token, and use the token again."""
    number = (await target.api.get("/v1/phone-numbers")).json["items"][0]["phone_number"]
    given = await scene.nobody.post(f"{path}/calls", {})
    result.check(given.status == 200, "a visitor's own call", given)
    if given.status != 200:
        return
    sockets = SocketAttack(scene, result)
    for attempt in ("first", "second"):
        message = await sockets.request_call(given.json["url"], given.json["token"], PERSON, number)
        ended = not message or json.loads(message)["event"] == "ended"
        result.check(ended or attempt == "first", f"a visitor's token, {attempt} call", message)
    newest = (await target.api.get("/v1/calls?limit=1")).json["items"][0]
    reached = (newest["direction"], newest["agent_id"], newest["from_number"])
    result.check(reached == ("inbound", target.ids["agents"][0], "widget"), "a visitor dials a number", newest)
    await eventually(
        lambda: target.api.get(f"/v1/calls/{newest['id']}"), lambda answer: answer.json["ended_at"], seconds=60
    )


async def _attack_session(nobody: HttpClient, path: str, other: str, result: AttackResult) -> None:
    """Read a conversation with changed tokens, and with another widget."""
    token = (await _write(nobody, path)).json.get("session", "")
    for name, address, given in (
        ("another widget's", other, token),
        ("a changed", path, token[:-2] + "xx"),
        ("an empty", path, ""),
    ):
        headers = {"Authorization": f"Bearer {given}"}
        read = await nobody.send("GET", f"{address}/messages", headers=headers)
        result.check(read.status == 200 and read.json == {"entries": []}, f"a conversation by {name} token", read)
