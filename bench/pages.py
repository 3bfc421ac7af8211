"""The dashboard's main pages in a cold Chromium at 1440 px, with ten thousand calls and contacts: bytes as they were
sent, requests, time to DOMContentLoaded, and processor time of the serving process.

A real `serve` process answers over embedded servers. Chromium caches nothing, and leaves the page between two rounds,
so that its live parts end. Bytes and requests are those of the page, with its answers' headers, until the load event.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from uuid import UUID

import aiohttp
from playwright.async_api import CDPSession, Page
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import col, select
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.calls.models import Call
from switchboard.resources.identity import service as identity

from bench._carrier import is_ready
from bench.calls import cpu_seconds
from bench.costs import find_port
from bench.embedded_server import build_serve_environment, run_with_servers
from bench.lists import FEW, PARENT, build_lists, grow, write_parent
from tests.fixtures.dashboard import PASSWORD, launch_browser
from tests.fixtures.eventually import eventually

ROUNDS, WARM = 5, 2
EMAIL = "owner@example.com"
FILLED = ("calls", "contacts", f"agents/{PARENT}/versions", f"campaigns/{PARENT}/contacts")
TIMES = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


@dataclass(frozen=True, slots=True)
class PageLoad:
    """Kilobytes as sent, requests, and milliseconds to DOMContentLoaded."""

    kilobytes: float
    requests: int
    milliseconds: float


async def fill(directory: DataDirectory, settings: Settings) -> UUID:
    """Create the organization with its rows and its owner; return the id of a call."""
    await upgrade(directory.database_url)
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with open_process_runtime(settings, **urls) as runtime:
        async with runtime.database.system() as session:
            organization = identity.create_organization(session, name="Bench")
            await identity.create_user(
                session, email=EMAIL, password=PASSWORD, superadmin=False, organization_id=organization.id
            )
        database = create_async_engine(directory.database_url.replace("postgresql://", "postgresql+asyncpg://"))
        for table in build_lists(organization.id):
            if table.path in FILLED:
                await write_parent(database, table)
                await grow(database, table, 0, FEW)
        await database.dispose()
        async with runtime.database.write(organization.id) as session:
            return (await session.exec(select(Call.id).order_by(col(Call.created_at).desc()).limit(1))).one()


def list_paths(call_id: UUID) -> Sequence[str]:
    """Return the pages' paths."""
    places = (
        "",
        "/calls",
        f"/calls/{call_id}",
        "/contacts",
        "/agents",
        f"/agents/{PARENT}",
        "/campaigns",
        "/texts",
        "/usage",
        "/search?q=Ada",
    )
    return [f"/dashboard{place}" for place in places]


@asynccontextmanager
async def run_serve(directory: DataDirectory, settings: Settings) -> AsyncIterator[int]:
    """Run `serve`, and yield its process id when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "switchboard", "serve"],
        env={**os.environ, **build_serve_environment(directory, settings.port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as http:
            await eventually(lambda: is_ready(http, settings.base_url), seconds=60)
        yield process.pid
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def load(page: Page, devtools: CDPSession, url: str) -> PageLoad:
    """Load a page with an empty cache."""
    await page.goto("about:blank")
    sent: list[float] = []

    def count(event: dict[str, float]) -> None:
        sent.append(event["encodedDataLength"])

    devtools.on("Network.loadingFinished", count)
    answer = await page.goto(url, wait_until="load")
    milliseconds = await page.evaluate(TIMES)
    devtools.remove_listener("Network.loadingFinished", count)
    if answer is None or not answer.ok:
        raise SystemExit(f"{url} answers {answer.status if answer else 'nothing'}")
    return PageLoad(sum(sent) / 1000, len(sent), milliseconds)


async def measure(directory: DataDirectory) -> None:
    settings = Settings(data_dir=directory.path, port=find_port())
    call_id = await fill(directory, settings)
    async with run_serve(directory, settings) as pid, launch_browser() as browser:
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.goto(f"{settings.base_url}/dashboard")
        await page.get_by_label("E-mail address").fill(EMAIL)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await page.get_by_role("heading", name="Overview").wait_for()
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Network.enable")
        await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
        print("page                                 |   kB | requests | ms to DOMContentLoaded | CPU ms")
        for path in list_paths(call_id):
            url = settings.base_url + path
            for _ in range(WARM):
                await load(page, devtools, url)
            before = cpu_seconds(pid)
            loads = [await load(page, devtools, url) for _ in range(ROUNDS)]
            spent = (cpu_seconds(pid) - before) / ROUNDS * 1000
            size, requests = max(one.kilobytes for one in loads), max(one.requests for one in loads)
            name = path.replace(str(call_id), "…").replace(str(PARENT), "…")
            took = median(one.milliseconds for one in loads)
            print(f"{name:36} | {size:4.0f} | {requests:8} | {took:22.0f} | {spent:6.0f}", flush=True)


def run() -> None:
    """Print the table."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
