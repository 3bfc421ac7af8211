"""What the wire servers of vendors have in common: people with telephones on one side, requests that fail as planned on the other."""

import asyncio
import io
import wave
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import aiohttp
import numpy as np
from aiohttp import web
from switchboard.plugin_sdk import SimulatedCall
from switchboard.plugin_sdk.audio import decode_audio
from switchboard_offline.loopback.callbacks import CallEndedNotice, IncomingCallNotice, NoticeSender
from switchboard_offline.loopback.leg import LoopbackLeg
from switchboard_offline.loopback.persons import Directory, synthesize_mulaw
from switchboard_offline.loopback.simulation import SimulatedCaller

NEVER = -1
"""A planned failure: no answer."""
GARBLED = -3
"""A planned failure: the work is done, and a page of somebody else's comes back."""
DONE = -2
"""A planned failure: 500, though the work is done."""
BROKEN = 0
"""A planned failure: the connection breaks once the work is done."""

OURS = "+12125550100"
"""The number of the plugins' own tests."""
JsonBody = dict[str, object]
LegT = TypeVar("LegT", bound=LoopbackLeg)


class Refused(Exception):
    """An error of the API."""

    def __init__(self, status: int, body: JsonBody) -> None:
        self.status = status
        self.body = body


class Vendor(ABC, Generic[LegT]):
    """One account. `failures` holds, by method and last part of the path, statuses to be answered before anything is done (or `BROKEN`, `NEVER`,
    `DONE`, `GARBLED`); `talked` counts the calls in which somebody was heard; `introductions` are what
    targets of transfers were told; with `repeats` each callback about a call is told twice."""

    def __init__(self) -> None:
        self.address = ""
        self.failures: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.purchases = 0
        self.recordings: dict[str, bytes] = {}
        self.legs: dict[str, LegT] = {}
        self.repeats = False
        self.talked = 0
        self.introductions: list[str] = []
        self.closing = asyncio.Event()
        self.directory = Directory({})
        self._http: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def http(self) -> aiohttp.ClientSession:
        assert self._http is not None
        return self._http

    # --- what differs ---

    @abstractmethod
    def failed(self, status: int) -> Refused:
        """The vendor's words for 429 and 5xx."""

    @abstractmethod
    def authenticate(self, request: web.Request) -> None:
        """Raises `Refused` for a request without the account's credential."""

    @abstractmethod
    async def ended(self, leg: LegT) -> None:
        """A call is over, and its end has been told."""

    # --- calls ---

    async def simulate(
        self, leg: LegT, post: NoticeSender, announced: IncomingCallNotice, lines: Sequence[str]
    ) -> SimulatedCall:
        """Somebody rings and says these lines."""
        call = SimulatedCaller([await synthesize_mulaw(line) for line in lines], self.directory, lambda _: None)
        await self.run(leg, lambda leg: call.ring(leg, post, "", announced))
        return call.result(leg)

    def run(self, leg: LegT, call: Callable[[LoopbackLeg], Awaitable[CallEndedNotice]]) -> asyncio.Task[None]:
        async def whole() -> None:
            await leg.run(call)
            del self.legs[leg.call_id]
            self.talked += leg.phone.audible_frames > 0
            await self.ended(leg)

        return self.spawn(whole())

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- requests ---

    async def serve(
        self, key: tuple[str, str], request: web.Request, work: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """One request, answered as the vendor does or as planned."""
        planned = self.failures[key]
        failure = planned.pop(0) if planned else None
        try:
            self.authenticate(request)
            if failure == NEVER:
                await self.closing.wait()
            elif failure and failure not in (DONE, GARBLED):
                raise self.failed(failure)
            response = await work()
            if failure == GARBLED:
                return web.Response(text="<html>Welcome</html>", content_type="text/html", status=response.status)
            if failure == DONE:
                raise self.failed(500)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if failure == BROKEN and request.transport is not None:
            request.transport.abort()
        return response

    async def storage(self, request: web.Request) -> web.StreamResponse:
        """A recording where it is kept, on a host of its own that needs no credential."""
        assert "Authorization" not in request.headers, "the credential went to another host"
        whole = self.recordings[request.match_info["sid"]]
        part = request.http_range
        if part.start is None and part.stop is None:
            return web.Response(body=whole, content_type="audio/x-wav")
        start, stop, _ = part.indices(len(whole))
        headers = {"Content-Range": f"bytes {start}-{stop - 1}/{len(whole)}"}
        return web.Response(body=whole[start:stop], status=206, headers=headers, content_type="audio/x-wav")

    def storage_url(self, sid: str) -> str:
        return f"http://localhost:{self.address.rpartition(':')[2]}/storage/{sid}"

    # --- opening and closing ---

    async def idle(self) -> None:
        """Returns when every call is over and everything has been told."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        self.closing.set()
        for leg in self.legs.values():
            leg.hang_up()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        await self.http.close()

    @asynccontextmanager
    async def listening(self, application: web.Application) -> AsyncIterator[None]:
        """On a free port."""
        application.router.add_route("GET", "/storage/{sid}", self.storage)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        # A connection that is kept may be closed by the platform just as it is used again.
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        try:
            yield
        finally:
            await self.close()
            await runner.cleanup()


def stereo(leg: LoopbackLeg) -> bytes:
    """A call as a WAV file: what the person said on the left, what they heard on the right."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(2)
        recording.setsampwidth(2)
        recording.setframerate(8000)
        sides = [decode_audio(bytes(side), "mulaw") for side in (leg.phone.said, leg.phone.heard)]
        recording.writeframes(np.stack(sides, axis=1).astype("<i2").tobytes())
    return file.getvalue()
