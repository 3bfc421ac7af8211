"""Scene of the attacks: a running instance, two organizations on it, and nobody."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import aiohttp
from switchboard.foundation.web.openapi import Json

from tests.attack.credentials import Credentials
from tests.attack.http_client import CanaryWatch, HttpClient
from tests.attack.organization import Organization, open_organization, populate, wait_until_quiet
from tests.attack.report import AttackResult

AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class LaterServer:
    """A server of the same instance. `advance` sets its clock ahead of the others' by this time, and
    `create_password_link` has the operator create a link for a user with this e-mail address.
    """

    url: str
    advance: Callable[[timedelta], None]
    create_password_link: Callable[[str], Awaitable[str]]


OpenLaterServer: TypeAlias = Callable[[], AbstractAsyncContextManager[LaterServer]]


@dataclass(slots=True)
class Scene:
    """The instance, its OpenAPI document, and the attacking and the attacked one. `open_later_server` is None for an
    instance whose clocks the attacks cannot move.
    """

    base_url: str
    api: Json
    credentials: Credentials
    nobody: HttpClient
    victim: Organization
    stranger: Organization
    open_later_server: OpenLaterServer | None = None


Attack: TypeAlias = Callable[[Scene, AttackResult], Awaitable[None]]


@asynccontextmanager
async def open_scene(
    base_url: str, credentials: Credentials, open_later_server: OpenLaterServer | None = None
) -> AsyncIterator[Scene]:
    """Sign in to both organizations, and give each a row of every kind."""
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout) as session:
        nobody = HttpClient(base_url.rstrip("/"), "", CanaryWatch(AttackResult("canaries")), session)
        api = (await nobody.get("/openapi.json")).json
        victim = await open_organization("victim", credentials.victim, nobody, api)
        stranger = await open_organization("stranger", credentials.stranger, nobody, api)
        await asyncio.gather(populate(victim), populate(stranger))
        yield Scene(nobody.base_url, api, credentials, nobody, victim, stranger, open_later_server)


async def run_attacks(scene: Scene, attacks: Sequence[tuple[str, Attack]]) -> list[AttackResult]:
    """Run the attacks one after the other, and check after each that nothing of the victim has changed."""
    results = []
    for name, attack in attacks:
        result, began = AttackResult(name), time.perf_counter()
        before = await wait_until_quiet(scene.victim)
        await attack(scene, result)
        after = await scene.victim.read_rows()
        changed = {path: after.get(path) for path, rows in before.items() if after.get(path) != rows}
        result.check(not changed, "rows of the victim afterwards", changed)
        result.seconds = time.perf_counter() - began
        results.append(result)
    return [*results, scene.nobody.watch.result]


async def gather_limited(attempts: Iterable[Awaitable[None]]) -> None:
    """Run attempts, a few at a time."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def run(attempt: Awaitable[None]) -> None:
        async with limit:
            await attempt

    await asyncio.gather(*(run(attempt) for attempt in attempts))
