"""The calls of one provider instance, and a local HTTP endpoint through which other processes control them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final
from uuid import uuid4

import aiohttp
import msgspec
from aiohttp import web
from switchboard.plugin_sdk import CallEnded, ProviderError, WarmTransfer, find_client_identity

from switchboard_offline.loopback import signatures
from switchboard_offline.loopback.callbacks import NoticeSender
from switchboard_offline.loopback.clients import PATH, Clients, RingRequest, SocketLine, create_rung_person, ring_client
from switchboard_offline.loopback.leg import LoopbackLeg, TargetLeg, join_legs, ring_person
from switchboard_offline.loopback.persons import Directory, synthesize_mulaw

CLOSE_SECONDS: Final = 3.0
_CALL_ID: Final = re.compile(r"lb-([0-9]{1,5})-[0-9a-f]{32}")


class TransferConsultation(msgspec.Struct, frozen=True):
    """The call to the target of a warm transfer."""

    call_id: str
    target: WarmTransfer
    events_url: str


class LegCommand(msgspec.Struct, frozen=True):
    """A command of the platform for a live call.

    `action`: `hang_up`, `transfer` to a number, `ring` a client, `digits` to press, `introduce` a target, or `join` the
    target's call. `clients_port` is the port of the exchange that has the sockets of clients.
    """

    action: str
    argument: str = ""
    consultation: TransferConsultation | None = None
    request: RingRequest | None = None
    clients_port: int = 0


class CallGone(ProviderError):
    """The call is over, or never existed."""

    def __init__(self) -> None:
        super().__init__("the call is over", code="call_gone", retryable=False)


class Exchange:
    """Holds legs and executes commands for them, from any process.

    A call's id contains the port of the exchange that holds it (`lb-<port>-<hex>`). The endpoint opens with the first
    call.
    """

    def __init__(self, directory: Directory, secret: str) -> None:
        self.directory = directory
        self.clients = Clients()
        self.closing = asyncio.Event()
        self._secret = secret
        self._http: aiohttp.ClientSession | None = None
        self._legs: dict[str, LoopbackLeg] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        # Neither cookies nor compression are used, so the session is as bare as possible.
        self._http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    async def close(self) -> None:
        """End every call, notify the platform once, and release all resources."""
        self.closing.set()
        for leg in self._legs.values():
            leg.hang_up()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._http is not None:
            await self._http.close()

    @property
    def is_busy(self) -> bool:
        """True while the exchange has calls, or messages to deliver."""
        return bool(self._tasks)

    @property
    def post(self) -> NoticeSender:
        """Sender of notices. Raises `ProviderError` while the exchange is closed."""
        if self._http is None or self._http.closed or self.closing.is_set():
            raise ProviderError("the loopback carrier is not open")
        return NoticeSender(self._http, self._secret, self.closing)

    def find_call_id(self, reference: str) -> str | None:
        """Return the id of the live call that was placed with this reference."""
        return next((leg.call_id for leg in self._legs.values() if leg.reference == reference), None)

    async def add(self, events_url: str, reference: str | None = None) -> LoopbackLeg:
        """Create a leg, not yet running."""
        post = self.post
        leg = LoopbackLeg(_new_id(await self.open_port()), post, events_url, reference)
        self._legs[leg.call_id] = leg
        return leg

    def create_sibling_id(self, call_id: str) -> str:
        """Return an id for another call in the exchange that holds this one. Raises `CallGone`."""
        return _new_id(_read_port(call_id))

    def run(self, leg: LoopbackLeg, call: Callable[[LoopbackLeg], Awaitable[CallEnded]]) -> asyncio.Task[None]:
        """Start a leg; it is removed when it is over."""
        task = self.spawn(leg.run(call))
        task.add_done_callback(lambda _: self._legs.pop(leg.call_id))
        return task

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task that `close` waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def order(self, call_id: str, order: LegCommand) -> None:
        """Execute a command, here or in the process that holds the call. Raises `CallGone` and `ProviderError`."""
        port = _read_port(call_id)
        if call_id in self._legs:
            await self._execute(self._legs[call_id], order)
        elif port != self._port:
            await self._ask(f"http://127.0.0.1:{port}/calls/{call_id}", order)
        else:
            raise CallGone

    async def _ask(self, url: str, order: LegCommand) -> None:
        try:
            status, body = await self.post.send(url, msgspec.json.encode(order))
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL):
            raise CallGone from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ProviderError(f"the process that holds the call does not answer: {reason}") from error
        if status == 409:
            raise ProviderError(body.decode(errors="replace"), retryable=False)
        if status != 204:
            raise CallGone

    async def _execute(self, leg: LoopbackLeg, order: LegCommand) -> None:
        match order.action:
            case "hang_up":
                leg.hang_up()
            case "transfer":
                subscriber = self.directory.subscriber(order.argument)
                if subscriber.outcome is not None:
                    reason = subscriber.error_message or subscriber.outcome
                    raise ProviderError(f"{order.argument} does not answer: {reason}", retryable=False)
                leg.connect_to(subscriber.person)
            case "ring" if order.request is not None:
                leg.connect_to(create_rung_person(self.post, order.clients_port, order.request))
            case "introduce" if order.consultation is not None:
                await self._consult(order.consultation, order.clients_port)
            case "join":
                target = self._legs.get(order.argument)
                if target is None:
                    raise ProviderError("the target of the transfer has hung up", code="call_gone", retryable=False)
                join_legs(leg, target)
            case _:
                await leg.press(order.argument)

    async def _consult(self, wanted: TransferConsultation, clients_port: int) -> None:
        target, post = wanted.target, self.post
        identity = find_client_identity(target.to_number)
        audio = await synthesize_mulaw(f"{target.text} {target.prompt}")
        if identity is None:
            ringing = ring_person(self.directory.subscriber(target.to_number), target.ring_seconds)
        else:
            request = RingRequest(wanted.call_id, identity, target.caller_id, target.ring_seconds)
            ringing = ring_client(post, clients_port, request)
        leg = self._legs[wanted.call_id] = TargetLeg(wanted.call_id, post, wanted.events_url)
        self.run(leg, lambda leg: leg.consult(ringing, audio))

    # the endpoint for other processes

    async def open_port(self) -> int:
        """Return the port of the endpoint, which opens with the first call."""
        async with self._opening:
            if self._runner is None:
                application = web.Application()
                application.router.add_post("/calls/{call_id}", self._serve)
                application.router.add_get(PATH, self._serve_line)
                runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
                await runner.setup()
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self._runner, self._port = runner, int(runner.addresses[0][1])
        return self._port

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not self._is_signed(request, body):
            return web.Response(status=403)
        leg = self._legs.get(request.match_info["call_id"])
        if leg is None:
            return web.Response(status=404)
        try:
            await self._execute(leg, msgspec.json.decode(body, type=LegCommand))
        except ProviderError as error:
            return web.Response(status=409, text=error.message)
        return web.Response(status=204)

    async def _serve_line(self, request: web.Request) -> web.StreamResponse:
        if not self._is_signed(request, b""):
            return web.Response(status=403)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        line = SocketLine(socket)
        wanted = await line.receive()
        if isinstance(wanted, str):
            await self.clients.ring(msgspec.json.decode(wanted, type=RingRequest), line)
        await line.close()
        return socket

    def _is_signed(self, request: web.Request, body: bytes) -> bool:
        signature = request.headers.get(signatures.HEADER)
        return signatures.find_signature_fault(self._secret, signature, str(request.url), body) is None


def _new_id(port: int) -> str:
    return f"lb-{port}-{uuid4().hex}"


def _read_port(call_id: str) -> int:
    """Return the port of the exchange that holds a call. Raises `CallGone` for an id of another form."""
    shape = _CALL_ID.fullmatch(call_id)
    if shape is None:
        raise CallGone
    return int(shape[1])
