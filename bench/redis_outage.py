"""Delay of background work while Redis is stopped, beside the same work with Redis.

A `serve` and a `worker` process run over embedded servers with the offline providers. Text messages with an automation
that they trigger, uploads of documents, and campaigns of one contact begin one after the other, each kind by itself,
before Redis is stopped, for `BENCH_SECONDS` seconds without it, and after it is back. A delay is the time from the
request to what the worker does for it, looked for over the API each tenth of a second.
"""

import asyncio
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from redis.asyncio import Redis
from switchboard.apps.embedded import EmbeddedServers

from bench.costs import Platform, first_id, start_platform

SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "300"))
BEFORE_SECONDS, AFTER_SECONDS, LOOK_SECONDS, PAUSE_SECONDS = 60.0, 30.0, 0.1, 0.5
MOST_SECONDS: Final = 90.0
TAG: Final = {"type": "tag_contact", "params": {"phone_number": "{{ data.to_number }}", "tag": "seen"}}


@dataclass(slots=True)
class Probe:
    """Begins work of all kinds, and notes the delays of each by phase."""

    platform: Platform
    number: str = ""
    agent: str = ""
    phase: str = "with Redis"
    is_over: bool = False
    delays: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    async def repeat(self, begin: Callable[[int], Awaitable[None]]) -> None:
        """Begin one piece of work after the other until the end."""
        piece = 0
        while not self.is_over:
            await begin(piece)
            piece += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def wait(self, kind: str, phase: str, began: float, look: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `look` finds the work done, and note the delay in the phase in which it began."""
        try:
            async with asyncio.timeout(MOST_SECONDS):
                while not await look():  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise RuntimeError(f"{kind}: nothing within {MOST_SECONDS:g} s ({phase})") from None
        self.delays.setdefault((kind, phase), []).append(time.monotonic() - began)

    async def send_texts(self, automation: str) -> None:
        """Send text messages, each of which an automation follows."""

        async def send(piece: int) -> None:
            phase, began = self.phase, time.monotonic()
            body = {
                "from_number_id": self.number,
                "to_number": f"+1555{20000 + piece}02",
                "body": "Your bread is ready.",
            }
            message = await self.platform.send("POST", "/v1/sms", body)
            path = f"/v1/sms/conversations/{message['conversation_id']}/messages"

            async def is_sent() -> bool:
                return (await first_item(self.platform, path))["status"] not in ("queued", "sending")

            async def has_run() -> bool:
                runs = await self.platform.send("GET", f"/v1/automations/{automation}/runs?limit=1")
                return runs["total"] == piece + 1

            await self.wait("text message", phase, began, is_sent)
            await self.wait("automation after it", phase, time.monotonic(), has_run)

        await self.repeat(send)

    async def upload(self, base: str) -> None:
        """Upload documents until each can be found."""

        async def upload(piece: int) -> None:
            phase, began = self.phase, time.monotonic()
            body = {"filename": f"bread-{piece}.txt", "content": f"Loaf {piece} costs four dollars."}
            path = f"/v1/knowledge-bases/{base}/documents"
            document = await self.platform.send("POST", path, body)

            async def is_ready() -> bool:
                newest = await first_item(self.platform, path)
                if newest["id"] != document["id"] or newest["status"] == "failed":
                    raise RuntimeError(newest)
                return newest["status"] == "ready"

            await self.wait("document", phase, began, is_ready)

        await self.repeat(upload)

    async def dial(self) -> None:
        """Start campaigns, each of which calls one contact."""

        async def start(piece: int) -> None:
            body = {"name": "Bread", "agent_id": self.agent, "phone_number_id": self.number}
            people = [{"phone_number": f"+1555{40000 + piece}01"}]
            campaign = await self.platform.send("POST", "/v1/campaigns", {**body, "contacts": people})
            path, phase, began = f"/v1/campaigns/{campaign['id']}", self.phase, time.monotonic()
            await self.platform.send("POST", f"{path}/start")

            async def is_dialed() -> bool:
                return (await first_item(self.platform, f"{path}/contacts"))["status"] not in ("pending", "dialing")

            async def is_completed() -> bool:
                return (await self.platform.send("GET", path))["status"] == "completed"

            await self.wait("campaign to its first call", phase, began, is_dialed)
            await self.wait("campaign to its end", phase, began, is_completed)

        await self.repeat(start)


async def first_item(platform: Platform, path: str) -> dict[str, object]:
    items = (await platform.send("GET", path))["items"]
    if not isinstance(items, list):
        raise TypeError(path)
    item: dict[str, object] = items[0]
    return item


async def measure() -> None:
    """Print a line for each kind of work and phase."""
    with tempfile.TemporaryDirectory() as folder:
        async with start_platform(Path(folder)) as platform:
            probe = Probe(platform)
            probe.agent, probe.number = (
                await first_id(platform, "/v1/agents"),
                await first_id(platform, "/v1/phone-numbers"),
            )
            rule = {"name": "Tag", "trigger_type": "sms.sent", "actions": [TAG]}
            automation = str((await platform.send("POST", "/v1/automations", rule))["id"])
            base = str((await platform.send("POST", "/v1/knowledge-bases", {"name": "Bread"}))["id"])
            async with asyncio.TaskGroup() as tasks:
                for work in (probe.send_texts(automation), probe.upload(base), probe.dial()):
                    tasks.create_task(work)
                await asyncio.sleep(BEFORE_SECONDS)
                async with Redis.from_url(platform.directory.redis_url) as redis:
                    pid = int((await redis.info("server"))["process_id"])
                os.kill(pid, signal.SIGKILL)
                probe.phase = "Redis stopped"
                await asyncio.sleep(SECONDS)
                async with EmbeddedServers(platform.directory, postgres=False):
                    probe.phase = "Redis back"
                    await asyncio.sleep(AFTER_SECONDS)
                    probe.is_over = True
    print("work                       | phase         | pieces | median s | longest s")
    for (kind, phase), delays in sorted(probe.delays.items()):
        print(f"{kind:26} | {phase:13} | {len(delays):6} | {statistics.median(delays):8.2f} | {max(delays):9.2f}")


def run() -> None:
    """Print the table."""
    asyncio.run(measure())
