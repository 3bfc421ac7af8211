"""Delivery of a call's notices to the platform: signed, in order, and repeated while the platform restarts."""

import asyncio
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog

from switchboard_telephony_sip.callbacks import GatewayEvent, get_event_path, write_callback
from switchboard_telephony_sip.signatures import SIGNATURE_HEADER, sign_message

logger = structlog.get_logger()
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits between attempts: a minute in all, in which a server restarts."""
ANNOUNCE_RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0)
"""Waits while a caller hears the ringing; then the trunk tries its next gateway."""
ANSWER_SECONDS: Final = 10.0


class NoticeRefused(Exception):
    """The platform does not accept a notice, or does not answer."""


@dataclass(frozen=True, slots=True)
class PlatformLink:
    """Way to the platform for one account: its secret and the gateway's HTTP client."""

    http: aiohttp.ClientSession
    secret: str

    async def deliver(self, events_url: str, event: GatewayEvent, waits: tuple[float, ...] = RETRY_SECONDS) -> bytes:
        """Deliver a notice and return the platform's response. Raises `NoticeRefused`."""
        url, body, reason = f"{events_url}/{get_event_path(event)}", write_callback(event), ""
        for wait in (0.0, *waits):
            await asyncio.sleep(wait)
            headers = {SIGNATURE_HEADER: sign_message(self.secret, url, body), "Content-Type": "application/json"}
            timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
            try:
                async with self.http.post(
                    url, data=body, headers=headers, timeout=timeout, allow_redirects=False
                ) as response:
                    text = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"the platform cannot be reached: {str(error) or type(error).__name__}"
                continue
            if response.status < 300:
                return text
            reason = f"the platform answered {response.status}"
            if response.status < 500:
                break
        raise NoticeRefused(reason)

    async def deliver_late(self, events_url: str, event: GatewayEvent) -> None:
        """Deliver a notice in the background. A platform that cannot be reached for longer misses it."""
        try:
            await self.deliver(events_url, event)
        except NoticeRefused as error:
            logger.warning("notice of a SIP gateway was not delivered", kind=type(event).__name__, reason=str(error))


class NoticeQueue:
    """Notices of one call, delivered one after the other."""

    def __init__(self, link: PlatformLink, events_url: str) -> None:
        self._link = link
        self._events_url = events_url
        self._waiting: asyncio.Queue[GatewayEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def post(self, event: GatewayEvent) -> None:
        """Queue a notice behind the earlier ones."""
        self._waiting.put_nowait(event)
        if self._task is None:
            self._task = asyncio.create_task(self._deliver())

    async def flush(self) -> None:
        """Wait until every notice was delivered or given up."""
        await self._waiting.join()

    async def close(self) -> None:
        """Deliver what is queued, and end."""
        if self._task is not None:
            self._waiting.put_nowait(None)
            await self._task

    async def _deliver(self) -> None:
        while (event := await self._waiting.get()) is not None:
            await self._link.deliver_late(self._events_url, event)
            self._waiting.task_done()
