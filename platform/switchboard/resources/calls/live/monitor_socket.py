"""The socket of a page that follows a live call, `/live/<ticket>`; its protocol is in docs/live-calls.md.

It may arrive at any process: everything between it and the call goes over Redis (`live.py`, `feed.py`).
"""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias
from uuid import uuid4

import numpy as np
import structlog
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from redis.exceptions import RedisError
from yarl import URL

from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.engine.conversation.handoff.supervision import SupervisionState
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.live import channel, feed
from switchboard.resources.calls.live.tickets import PREFIX, TicketGrant, redeem_ticket
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket, refuse_socket
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.sign_in import can_enter
from switchboard.runtime import Runtime

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope

logger = structlog.get_logger()
ATTENDANCE_SECONDS = 1.0
IDLE_SECONDS = 10.0
"""A page that has sent nothing for so long is gone; ours sends a ping every two seconds."""
MAX_RINGING_SECONDS, POLL_SECONDS = 60.0, 0.25
"""How long a call may ring while a page waits for it, which is seen in the database."""
ACCESS_CHECK_SECONDS = 3.0
QUIET_SECONDS = 5.0
LOST_SECONDS = 20.0
LEVEL_FRAMES = 5
MAX_VOICE_BYTES = 16_000
MAX_WHISPER = 2000
UNREACHABLE = "The call cannot be reached at the moment."
NOT_ALLOWED = "This ticket is for following the call only."


class MonitorCommand(BaseModel):
    """What a page asks for, `whisper` with a text. A `ping` says that it is still there."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["ping", "take_over", "hand_back", "hang_up"]


class WhisperCommand(BaseModel):
    """An instruction to the agent."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["whisper"]
    text: str = Field(min_length=1, max_length=MAX_WHISPER, pattern=r"^[^\x00]*\S[^\x00]*$")


Command: TypeAlias = Annotated[MonitorCommand | WhisperCommand, Field(discriminator="type")]
_asked: TypeAdapter[MonitorCommand | WhisperCommand] = TypeAdapter(Command)


async def serve_monitor_socket(
    runtime: Runtime, scope: "WebsocketScope", receive: "ASGIReceiveCallable", send: "ASGISendCallable"
) -> None:
    """Follow the call whose ticket the path has. A foreign origin, and a ticket that is not good, are answered with 403."""
    await receive()
    if not _is_own_page(runtime, scope):
        logger.warning("live socket refused: its origin is not SWITCHBOARD_PUBLIC_URL")
        return await refuse_socket(send)
    grant = await redeem_ticket(runtime, scope["path"].removeprefix(PREFIX))
    if grant is None:
        logger.warning("live socket refused: its ticket is not good")
        return await refuse_socket(send)
    structlog.contextvars.bind_contextvars(organization_id=str(grant.organization_id), call_id=str(grant.call_id))
    await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
    socket = AsgiMediaSocket(receive, send)
    holder = await _holder(runtime, grant)
    if holder is None:
        await socket.send(json.dumps({"type": "ended", "reason": None}))
        await socket.close()
    else:
        await MonitorConnection(runtime, grant, holder, socket).run()
    await socket.drain()
    return None


async def _holder(runtime: Runtime, grant: TicketGrant) -> str | None:
    """The process that holds the call, once one does; None where the call is over before."""
    waited = 0.0
    while waited < MAX_RINGING_SECONDS and not runtime.engine.stopping.is_set():
        call = await _live_call(runtime, grant)
        if call is None or is_over(call) or call.holder is not None:
            return call.holder if call else None
        await asyncio.sleep(POLL_SECONDS)
        waited += POLL_SECONDS
    return None


def _is_own_page(runtime: Runtime, scope: "WebsocketScope") -> bool:
    """Browsers say truly which page opens a socket, and open one for any."""
    origins = [value for name, value in scope["headers"] if name == b"origin"]
    try:
        return len(origins) == 1 and URL(origins[0].decode("ascii")).origin() == URL(runtime.settings.base_url).origin()
    except ValueError:
        return False


async def _live_call(runtime: Runtime, grant: TicketGrant) -> Call | None:
    try:
        async with runtime.database.tenant(grant.organization_id) as session:
            return await calls.get_call(session, grant.call_id)
    except NotFound:
        return None


class MonitorConnection:
    """One page's socket, from its acceptance to its end."""

    def __init__(self, runtime: Runtime, grant: TicketGrant, holder: str, socket: AsgiMediaSocket) -> None:
        self._runtime = runtime
        self._grant = grant
        self._may_control = grant.allows == "control"
        self._holder = holder
        self._socket = socket
        self._id = uuid4()
        self._known = 0
        self._state: SupervisionState | None = None
        self._there = asyncio.Event()
        self._heard_at = asyncio.get_running_loop().time()
        self._unheard_until = 0.0
        self._levels: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Until the call is over, the page is gone or signed out, or this process stops: the page then comes back by another."""
        works = (self._from_page(), self._from_call(), self._attend(), self._stopping(), self._signed_in())
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if isinstance(error := task.exception(), Exception) and not isinstance(error, ConnectionError):
                    logger.error("a live socket failed", exc_info=error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._do("leave")
            await self._socket.close()

    async def _signed_in(self) -> None:
        """Until the person has signed out in that browser, or may no longer enter the organization."""
        grant = self._grant
        while True:
            await asyncio.sleep(ACCESS_CHECK_SECONDS)
            if grant.browser is not None and not await can_enter(
                self._runtime.database, grant.browser, grant.organization_id
            ):
                return

    # --- from the page to the call ---

    async def _from_page(self) -> None:
        # Whoever is quick asks for something before the call knows them.
        await self._there.wait()
        while True:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    message = await self._socket.receive()
            except TimeoutError:
                return
            if message is None:
                return
            if isinstance(message, bytes):
                await self._voice(message)
            else:
                await self._asked(message)

    async def _voice(self, audio: bytes) -> None:
        has_it = self._state is not None and self._state.monitor_id == self._id
        moment = asyncio.get_running_loop().time()
        if not has_it or moment < self._unheard_until or len(audio) % 2 or not 0 < len(audio) <= MAX_VOICE_BYTES:
            return
        if not await channel.send_voice(self._runtime.redis, self._holder, self._grant.call_id, self._id, audio):
            self._unheard_until = moment + channel.RECONNECT_SECONDS

    async def _asked(self, message: str) -> None:
        try:
            asked = _asked.validate_json(message)
        except ValidationError:
            await self._tell({"type": "refused", "action": None, "message": "The message was not understood."})
            return
        if asked.type == "ping":
            return
        if not self._may_control:
            await self._tell({"type": "refused", "action": asked.type, "message": NOT_ALLOWED})
        elif not await self._do(asked.type, text=asked.text if isinstance(asked, WhisperCommand) else ""):
            await self._tell({"type": "refused", "action": asked.type, "message": UNREACHABLE})

    async def _do(self, action: channel.MonitorAction, *, text: str = "") -> bool:
        told = channel.MonitorMessage(
            monitor_id=self._id,
            person=self._grant.person,
            may_control=self._may_control,
            action=action,
            known=self._known,
            text=text,
        )
        return await channel.send_live_message(
            self._runtime.redis, self._holder, channel.LiveMessage(call_id=self._grant.call_id, monitor=told)
        )

    # --- from the call to the page ---

    async def _from_call(self) -> None:
        while True:
            try:
                async with self._runtime.redis.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.subscribe(feed.feed_channel(self._grant.call_id))
                    await self._do("attend")
                    async for message in subscription.listen():
                        if await self._is_over(feed.parse_feed_message(message["data"])):
                            return
            except (RedisError, OSError) as error:
                if isinstance(error, ConnectionError):
                    raise
                logger.warning("a live call cannot be followed: Redis is away", error=type(error).__name__)
                await asyncio.sleep(channel.RECONNECT_SECONDS)

    async def _is_over(
        self, told: bytes | feed.StateUpdate | feed.EntriesUpdate | feed.ActionRefused | feed.CallOver
    ) -> bool:
        self._heard_at = asyncio.get_running_loop().time()
        if isinstance(told, bytes):
            await self._audio(told)
        elif isinstance(told, feed.StateUpdate):
            await self._show(told.state)
        elif isinstance(told, feed.EntriesUpdate):
            await self._entries(told.first, told.entries)
        elif isinstance(told, feed.ActionRefused):
            if told.monitor_id == self._id:
                await self._tell({"type": "refused", "action": told.action, "message": told.message})
        else:
            await self._tell({"type": "ended", "reason": told.reason.value})
            return True
        return False

    async def _audio(self, frames: bytes) -> None:
        sides = np.frombuffer(frames, dtype="<i2").reshape(-1, 2).astype(np.float32) / 32768
        if len(sides):
            caller, agent = np.sqrt(np.mean(np.square(sides), axis=0))
            self._levels.append((float(caller), float(agent)))
        if len(self._levels) >= LEVEL_FRAMES:
            caller, agent = (round(max(side), 4) for side in zip(*self._levels, strict=True))
            self._levels.clear()
            await self._tell({"type": "levels", "caller": caller, "agent": agent})
        if self._grant.allows != "transcript":
            await self._socket.send(frames)

    async def _show(self, state: SupervisionState) -> None:
        if state == self._state:
            return
        before, self._state = self._state, state
        self._there.set()
        if before is not None and (before.person, before.monitor_id, before.agent) == (
            state.person,
            state.monitor_id,
            state.agent,
        ):
            return
        holder: JsonValue = None
        if state.person is not None:
            holder = {"name": state.person.name, "you": state.monitor_id == self._id}
        await self._tell({"type": "state", "holder": holder, "agent": state.agent})

    async def _entries(self, first: int, entries: list[TranscriptEntry]) -> None:
        if first > self._known:
            await self._do("attend")
            return
        for entry in entries[self._known - first :]:
            self._known += 1
            line: JsonValue = {
                "role": entry.role, "content": entry.content, "timestamp_ms": entry.started_ms, "ended_ms": entry.ended_ms,
                "interrupted": entry.interrupted, "by_person": entry.by_person,
            }  # fmt: skip
            await self._tell({"type": "transcript", "entry": line})

    async def _attend(self) -> None:
        """Say again and again that this monitor is there; look after a call that says nothing more."""
        while True:
            await asyncio.sleep(ATTENDANCE_SECONDS)
            await self._do("attend")
            quiet = asyncio.get_running_loop().time() - self._heard_at
            if quiet < QUIET_SECONDS:
                continue
            call = await _live_call(self._runtime, self._grant)
            if call is None or is_over(call) or quiet > LOST_SECONDS:
                await self._tell({"type": "ended", "reason": call.ended_reason if call else None})
                return

    async def _stopping(self) -> None:
        await self._runtime.engine.stopping.wait()

    async def _tell(self, message: dict[str, JsonValue]) -> None:
        await self._socket.send(json.dumps(message))
