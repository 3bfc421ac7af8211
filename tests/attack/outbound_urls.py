"""Every field that takes an address, with addresses of the network inside; a server on this machine counts visits."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.attack.organization import PERSON
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited
from tests.fixtures.hostile_urls import HOSTILE_URLS
from tests.fixtures.openapi_places import Operation, find_url_fields

ITEM = {"name": "find_order", "description": "Find an order."}
"""An item of a list whose items take an address."""
LOOPBACK = (
    "127.0.0.1",
    "localhost",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "127.1",
    "0",
    "①②⑦.⓪.⓪.①",
)
TEMPLATES = (
    "{{ '127.0.0.1' }}",
    "127.0.0.{{ 1 }}",
    "{{ 'local' ~ 'host' }}",
    "example.com@127.0.0.1",
    "{{ data.body }}",
)
PROVIDER_FIELDS = ("base_url", "url", "endpoint", "api_base", "address", "region", "resource")
PROVIDER_PAGE = re.compile(r"/dashboard/providers/[\w-]+/[\w-]+")


@dataclass(slots=True)
class Canary:
    """A server on loopback that nobody may reach: its port, and the first line of each request."""

    port: int = 0
    requests: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readline()).decode(errors="replace"))
        finally:
            writer.close()


@asynccontextmanager
async def open_canary() -> AsyncIterator[Canary]:
    canary = Canary()
    server = await asyncio.start_server(canary.serve, "127.0.0.1", 0)
    canary.port = server.sockets[0].getsockname()[1]
    async with server:
        yield canary


async def attack_urls(scene: Scene, result: AttackResult) -> None:
    """Save each address in each field, request each in an automation, and enter them for providers."""
    async with open_canary() as canary:
        local = [f"http://{host}:{canary.port}/canary" for host in LOOPBACK]
        await _save_urls(scene, result, [*(url for url in HOSTILE_URLS if url == url.strip()), *local])
        await _run_automations(scene, result, canary)
        await _enter_providers(scene, result, canary)
        result.check(not canary.requests, "requests to this machine", canary.requests)


async def _save_urls(scene: Scene, result: AttackResult, urls: list[str]) -> None:
    stranger = scene.stranger

    async def save(operation: Operation, path: tuple[str, ...], url: str) -> None:
        address, body = operation.fill(stranger.find_id)
        value: Any = url
        for name in reversed(path[1:]):
            value = [value] if name == "[]" else {**ITEM, name: value}
        answer = await stranger.api.send(operation.method, address, {**(body or {}), path[0]: value})
        result.check(answer.status == 422, f"{operation.method} {operation.path} {'.'.join(path)} = {url!r}", answer)

    fields = list(find_url_fields(scene.api))
    assert len(fields) > 5, "the document names fields for addresses"
    await gather_limited(save(operation, path, url) for url in urls for operation, path in fields)


async def _run_automations(scene: Scene, result: AttackResult, canary: Canary) -> None:
    """Write automations whose templates become private addresses, trigger them, and read what their requests became."""
    api, number = scene.stranger.api, scene.stranger.find_id("from_number_id")
    made = []
    for host in (*LOOPBACK, *TEMPLATES):
        params = {"url": f"http://{host}:{canary.port}/canary", "method": "POST", "body": "x"}
        action = {"type": "http_request", "params": params}
        body = {"name": host, "trigger_type": "sms.sent", "actions": [action]}
        answer = await api.post("/v1/automations", body)
        if answer.status == 201:
            made.append((host, answer.json["id"]))
        else:
            result.check(answer.status == 422, f"automation with {host}", answer)
    # Texts in templates: the last template is the body of this message.
    sent = await api.post("/v1/sms", {"from_number_id": number, "to_number": PERSON, "body": "127.0.0.1"})
    assert sent.status == 201, sent
    for host, automation in made:
        path = f"/v1/automations/{automation}"
        run = await scene.stranger.wait_for_run(path)
        result.check(run["status"] == "failed", f"run of the automation with {host}", run)
        await api.send("DELETE", path)


async def _enter_providers(scene: Scene, result: AttackResult, canary: Canary) -> None:
    """Enter an address as each setting of each provider that the dashboard offers, and check the provider."""
    owner = scene.stranger.owner
    pages = sorted(set(PROVIDER_PAGE.findall((await owner.get("/dashboard/providers")).text)))
    for page in pages:
        url = f"http://127.0.0.1:{canary.port}/canary"
        saved = await owner.submit(page, {f"settings.{name}": url for name in PROVIDER_FIELDS})
        result.check(saved.status in (303, 404, 405, 422), f"POST {page}", saved)
        kept = await owner.get(page)
        result.check(url not in kept.text or saved.status == 422, f"address kept by {page}", kept)
        if saved.status == 303:
            checked = await owner.submit(f"{page}/check")
            result.check(checked.status < 500, f"POST {page}/check", checked)
