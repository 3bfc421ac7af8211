"""Website widgets: pages of other sites, tokens that are used for other calls, and conversations without end."""

import json
from contextlib import AsyncExitStack

from aiohttp import WSMsgType
from switchboard.foundation.web.openapi import Json

from tests.attack.http_client import Answer, HttpClient
from tests.attack.organization import PERSON, Organization
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.attack.sockets import SECONDS, SocketAttack
from tests.fixtures.eventually import eventually

SITE, EVIL = "https://www.example.com", "https://evil.example.com"
MAX_CONVERSATIONS = 100
MAX_CALLS = 2
"""Limit of a widget whose visitors open more calls at the same time."""


async def create_widget(organization: Organization, name: str, **limits: int) -> Json:
    """Create a widget that shows nobody the organization's word, which the name of its agent has."""
    shown = {"title": name, "greeting": "Hello.", "allowed_origins": [SITE], "max_sessions_per_minute_per_address": 20}
    widget = {"name": name, "agent_id": organization.ids["agents"][0], **shown, **limits}
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
    await _attack_sockets(scene, target, result)
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


async def _attack_sockets(scene: Scene, target: Organization, result: AttackResult) -> None:
    """Wait for calls to a client with a visitor's token, and have more calls at the same time than the widget may."""
    widget = await create_widget(target, "Few", max_concurrent_sessions=MAX_CALLS)
    path, sockets = f"/widget/{widget['public_key']}/calls", SocketAttack(scene, result)
    tokens = [(await scene.nobody.post(path, {})).json for _ in range(MAX_CALLS + 2)]
    message = await sockets.exchange_first(tokens[0]["url"], {"event": "register", "token": tokens[0]["token"]})
    result.check(not message or json.loads(message)["event"] == "ended", "a visitor's token waits for calls", message)
    async with AsyncExitStack() as opened:
        connected = 0
        for token in tokens[1:]:
            socket = await opened.enter_async_context(scene.nobody.session.ws_connect(token["url"]))
            dial = {"event": "dial", "token": token["token"], "to_number": token["to_number"]}
            await socket.send_str(json.dumps(dial))
            first = await socket.receive(timeout=SECONDS)
            connected += first.type is WSMsgType.TEXT and json.loads(first.data)["event"] != "ended"
        result.check(connected <= MAX_CALLS, "calls with a widget at the same time", connected)
        result.check(connected > 0, "a visitor's own calls", connected)
    await wait_for_end(target)
    await target.api.send("DELETE", f"/v1/widgets/{widget['id']}")


async def wait_for_end(target: Organization) -> None:
    """Wait until the newest calls have ended, except chats, which go on for hours."""
    await eventually(
        lambda: target.api.get("/v1/calls?limit=100"),
        lambda answer: all(call["ended_at"] or call["to_number"] == "widget" for call in answer.json["items"]),
        seconds=60,
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
