"""Code that the vendors' wire servers share: people with telephones, and requests that fail as planned."""

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
from switchboard.plugin_sdk import CallEnded, IncomingCall, SimulatedCall
from switchboard.plugin_sdk.audio import decode_audio
from switchboard_offline.loopback.callbacks import NoticeSender
from switchboard_offline.loopback.caller import ScriptedCaller
from switchboard_offline.loopback.leg import LoopbackLeg
from switchboard_offline.loopback.persons import Directory, synthesize_mulaw

NEVER = -1
"""Planned failure: no response."""
GARBLED = -3
"""Planned failure: the request is executed, and an unrelated page is returned."""
DONE = -2
"""Planned failure: 500, though the request is executed."""
BROKEN = 0
"""Planned failure: the connection breaks after the request is executed."""

OURS = "+12125550100"
"""Phone number in the plugins' own tests."""
JsonBody = dict[str, object]
LegT = TypeVar("LegT", bound=LoopbackLeg)


class Refused(Exception):
    """An error response of the API."""

    def __init__(self, status: int, body: JsonBody) -> None:
        self.status = status
        self.body = body


class Vendor(ABC, Generic[LegT]):
    """One account.

    `failures` maps method and last part of the path to statuses that are returned before anything is done (or `BROKEN`,
    `NEVER`, `DONE`, `GARBLED`). `talked` counts the calls with audible speech. `introductions` are those spoken to
    targets of transfers. `texts` has the records of sent text messages by id. `redirects` are the targets of files in
    the storage that are elsewhere. With `repeats`, each callback about a call is sent twice.
    """

    def __init__(self) -> None:
        self.address = ""
        self.failures: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.purchases = 0
        self.recordings: dict[str, bytes] = {}
        self.texts: dict[str, JsonBody] = {}
        self.redirects: dict[str, str] = {}
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

    # --- vendor-specific parts ---

    @abstractmethod
    def create_failure(self, status: int) -> Refused:
        """Return the vendor's error for 429 and 5xx."""

    @abstractmethod
    def authenticate(self, request: web.Request) -> None:
        """Raise `Refused` for a request without the account's credential."""

    @abstractmethod
    async def handle_end(self, leg: LegT) -> None:
        """Handle the end of a call, after it was reported."""

    # --- calls ---

    async def simulate(
        self, leg: LegT, post: NoticeSender, notice: IncomingCall, lines: Sequence[str]
    ) -> SimulatedCall:
        """Call and say these lines."""
        call = ScriptedCaller([await synthesize_mulaw(line) for line in lines], self.directory, lambda _: None)
        await self.run(leg, lambda leg: call.ring(leg, post, "", notice))
        return call.result(leg)

    def run(self, leg: LegT, call: Callable[[LoopbackLeg], Awaitable[CallEnded]]) -> asyncio.Task[None]:
        async def whole() -> None:
            await leg.run(call)
            del self.legs[leg.call_id]
            self.talked += leg.phone.audible_frames > 0
            await self.handle_end(leg)

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
        """Respond to one request, as the vendor does or as planned."""
        failures = self.failures[key]
        failure = failures.pop(0) if failures else None
        try:
            self.authenticate(request)
            if failure == NEVER:
                await self.closing.wait()
            elif failure and failure not in (DONE, GARBLED):
                raise self.create_failure(failure)
            response = await work()
            if failure == GARBLED:
                return web.Response(text="<html>Welcome</html>", content_type="text/html", status=response.status)
            if failure == DONE:
                raise self.create_failure(500)
        except Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        if failure == BROKEN and request.transport is not None:
            request.transport.abort()
        return response

    async def storage(self, request: web.Request) -> web.StreamResponse:
        """Return a stored recording, from a separate host that needs no credential."""
        assert "Authorization" not in request.headers, "the credential went to another host"
        if (elsewhere := self.redirects.get(request.match_info["sid"])) is not None:
            raise web.HTTPTemporaryRedirect(elsewhere)
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

    async def wait_until_idle(self) -> None:
        """Wait until every call is over and every callback was sent."""
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
        """Listen on a free port."""
        application.router.add_route("GET", "/storage/{sid}", self.storage)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        # The platform may close a kept-alive connection at the moment of its next use.
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        try:
            yield
        finally:
            await self.close()
            await runner.cleanup()


def stereo(leg: LoopbackLeg) -> bytes:
    """Return a call as a WAV file: the person's speech on the left, the far end on the right."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(2)
        recording.setsampwidth(2)
        recording.setframerate(8000)
        sides = [decode_audio(bytes(side), "mulaw") for side in (leg.phone.said, leg.phone.heard)]
        recording.writeframes(np.stack(sides, axis=1).astype("<i2").tobytes())
    return file.getvalue()
