"""The carrier's exchange of one process: the calls whose legs lie here, and a small server for commands on them.

A call's id names the exchange that holds it (`lb-<port>-<random>`), so that any process on the machine that knows the signing secret can
command it; an exchange that is gone has taken its calls with it.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Coroutine, Mapping

import aiohttp
import structlog
from aiohttp import web
from switchboard.plugins import CallbackUrls, JsonObject, ProviderError

from switchboard_offline.loopback.leg import Leg
from switchboard_offline.loopback.signing import HEADER, is_valid, sign

logger = structlog.get_logger()
CALLBACK_SECONDS = 10.0
COMMAND_SECONDS = 5.0
RETRY_SECONDS = (0.2, 1.0, 3.0)


class Exchange:
    """Legs by their call's id. Opened when it is first needed."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._legs: dict[str, Leg] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._opening = asyncio.Lock()
        self._port = 0
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Start listening for commands; harmless when done twice."""
        async with self._opening:
            if self._runner is not None:
                return
            application = web.Application()
            application.router.add_post("/calls/{call_id}/{command}", self._command)
            self._runner = web.AppRunner(application, access_log=None)
            await self._runner.setup()
            site = web.TCPSite(self._runner, "127.0.0.1", 0)
            await site.start()
            self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """End every call and stop listening."""
        for leg in list(self._legs.values()):
            leg.line.hang_up()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    def session(self) -> aiohttp.ClientSession:
        """The exchange's HTTP client."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session

    async def add(self, make: Callable[[str], Leg]) -> Leg:
        """A new leg, under a fresh id."""
        await self.open()
        call_id = f"lb-{self._port}-{secrets.token_hex(12)}"
        leg = self._legs[call_id] = make(call_id)
        return leg

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Do something in the background, until the exchange is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("loopback carrier failed", exc_info=error)

    def forget(self, leg: Leg) -> None:
        """A leg is over."""
        self._legs.pop(leg.call_id, None)

    def find(self, reference: str) -> str | None:
        """The id of the call that was placed under a reference."""
        return next((leg.call_id for leg in self._legs.values() if leg.reference == reference), None)

    async def tell(self, callbacks: CallbackUrls, path: str, event: JsonObject) -> bytes:
        """Send a signed callback; tried again where the platform is away or failing. Raises `ProviderError`."""
        url, body = f"{callbacks.events}/{path}", json.dumps(event).encode()
        fault = ""
        for patience in (*RETRY_SECONDS, None):
            headers = {"Content-Type": "application/json", HEADER: sign(self._secret, url, body)}
            try:
                timeout = aiohttp.ClientTimeout(total=CALLBACK_SECONDS)
                async with self.session().post(url, data=body, headers=headers, timeout=timeout) as response:
                    answer = await response.read()
                    if response.status < 500:
                        if response.status >= 400:
                            raise ProviderError(f"the platform refused a callback with {response.status}", retryable=False)
                        return answer
                    fault = f"it answered {response.status}"
            except (aiohttp.ClientError, TimeoutError) as error:
                fault = str(error) or type(error).__name__
            if patience is not None:
                await asyncio.sleep(patience)
        raise ProviderError(f"the platform cannot be reached at {url}: {fault}")

    async def command(self, call_id: str, command: str, parameters: Mapping[str, str] | None = None) -> None:
        """Command a call, wherever on this machine it is held. Raises `ProviderError`; not for one that is gone, where that is as good."""
        port = call_id.split("-")[1] if call_id.count("-") == 2 and call_id.startswith("lb-") else ""
        if not port.isdigit():
            raise ProviderError(f"{call_id} is no call of this carrier", retryable=False)
        url, body = f"http://127.0.0.1:{port}/calls/{call_id}/{command}", json.dumps(parameters or {}).encode()
        try:
            timeout = aiohttp.ClientTimeout(total=COMMAND_SECONDS)
            async with self.session().post(url, data=body, headers={HEADER: sign(self._secret, url, body)}, timeout=timeout) as response:
                if response.status == 200:
                    return
                fault = (await response.text())[:200]
        except (aiohttp.ClientError, TimeoutError):
            fault = "the call is over"
        if command != "hang_up":
            raise ProviderError(fault, retryable=False)

    async def _command(self, request: web.Request) -> web.Response:
        body = await request.read()
        url = f"http://127.0.0.1:{self._port}{request.path}"
        if not is_valid(self._secret, url, body, request.headers.get(HEADER, "")):
            return web.Response(status=403, text="the command is not signed")
        leg = self._legs.get(request.match_info["call_id"])
        if leg is None:
            return web.Response(status=404, text="the call is over")
        parameters = json.loads(body)
        match request.match_info["command"]:
            case "hang_up":
                leg.line.hang_up()
            case "transfer":
                self.run(leg.transfer(parameters["to"]))
            case "digits":
                leg.pressed += parameters["digits"]
            case unknown:
                return web.Response(status=404, text=f"there is no command {unknown}")
        return web.Response()
