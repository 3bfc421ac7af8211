"""Socket of a page that follows a live call, `/live/<ticket>` (docs/reference/live-call-socket.md).

The socket may arrive at any process, so everything between it and the call goes over Redis (`channel.py`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias
from uuid import uuid4

import numpy as np
import structlog
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError
from yarl import URL

from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.supervision import NewEntries, SupervisionState
from switchboard.foundation.database import Database
from switchboard.foundation.redis_client import receive_messages
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.live import channel
from switchboard.resources.calls.live.tickets import PREFIX, TicketGrant, redeem_ticket
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket, refuse_socket
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.sign_in import can_enter

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope

logger = structlog.get_logger()
ATTENDANCE_SECONDS = 1.0
IDLE_SECONDS = 10.0
"""Time after which a page that sends nothing is gone; our pages send a ping every two seconds."""
MAX_RINGING_SECONDS, POLL_SECONDS = 60.0, 0.25
"""Time for which a page waits for a ringing call, and the interval at which it looks into the database."""
ACCESS_CHECK_SECONDS = 3.0
QUIET_SECONDS = 5.0
LOST_SECONDS = 20.0
LEVEL_FRAMES = 5
MAX_VOICE_BYTES = 16_000
MAX_WHISPER = 2000
UNREACHABLE = "The call cannot be reached at the moment."
NOT_ALLOWED = "This ticket is for following the call only."


class MonitorCommand(BaseModel):
    """Command of a page without parameters. A `ping` keeps the connection open."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["ping", "take_over", "hand_back", "hang_up"]


class WhisperCommand(BaseModel):
    """Command to whisper an instruction to the agent."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["whisper"]
    text: str = Field(min_length=1, max_length=MAX_WHISPER, pattern=r"^[^\x00]*\S[^\x00]*$")


Command: TypeAlias = MonitorCommand | WhisperCommand
_entry: TypeAdapter[TranscriptEntry] = TypeAdapter(TranscriptEntry)
_command: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="type")])


@dataclass(frozen=True, slots=True)
class MonitorServices:
    """Parts of the process for a page's connection: Redis reaches the call, the engine knows that the process stops."""

    database: Database
    redis: Redis
    engine: CallEngine


async def serve_monitor_socket(
    scope: "WebsocketScope",
    receive: "ASGIReceiveCallable",
    send: "ASGISendCallable",
    settings: Settings,
    services: MonitorServices,
) -> None:
    """Serve the socket of the call whose ticket is in the path.

    Refuse a foreign origin or an invalid ticket with 403.
    """
    await receive()
    if not _is_own_page(settings.base_url, scope):
        logger.warning("live socket refused: the origin is not SWITCHBOARD_PUBLIC_URL")
        return await refuse_socket(send)
    grant = await redeem_ticket(services.redis, scope["path"].removeprefix(PREFIX))
    if grant is None:
        logger.warning("live socket refused: the ticket is invalid")
        return await refuse_socket(send)
    structlog.contextvars.bind_contextvars(organization_id=str(grant.organization_id), call_id=str(grant.call_id))
    await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
    socket = AsgiMediaSocket(receive, send)
    holder = await _wait_for_holder(services, grant)
    if holder is None:
        await socket.send(json.dumps({"type": "ended", "reason": None}))
        await socket.close()
    else:
        await MonitorConnection(services, grant, holder, socket).run()
    await socket.drain()
    return None


async def _wait_for_holder(services: MonitorServices, grant: TicketGrant) -> str | None:
    """Wait for a process to run the call and return it; None if the call is over before."""
    waited = 0.0
    while waited < MAX_RINGING_SECONDS and not services.engine.stopping.is_set():
        call = await _find_call(services.database, grant)
        if call is None or is_over(call) or call.holder is not None:
            return call.holder if call else None
        await asyncio.sleep(POLL_SECONDS)
        waited += POLL_SECONDS
    return None


def _is_own_page(base_url: str, scope: "WebsocketScope") -> bool:
    """Return whether our page opens the socket: browsers let any page do so, and report its origin truthfully."""
    origins = [value for name, value in scope["headers"] if name == b"origin"]
    try:
        return len(origins) == 1 and URL(origins[0].decode("ascii")).origin() == URL(base_url).origin()
    except ValueError:
        return False


async def _find_call(database: Database, grant: TicketGrant) -> Call | None:
    async with database.read(grant.organization_id) as session:
        return await session.find(Call, grant.call_id)


class _ConnectionOver(Exception):
    """Cancels the tasks of a connection."""


class MonitorConnection:
    """Connection of one page, from its acceptance to its end."""

    def __init__(self, services: MonitorServices, grant: TicketGrant, holder: str, socket: AsgiMediaSocket) -> None:
        self._services = services
        self._grant = grant
        self._may_control = grant.access == "control"
        self._holder = holder
        self._socket = socket
        self._id = uuid4()
        self._known_entries = 0
        self._state: SupervisionState | None = None
        self._attached = asyncio.Event()
        self._updated_at = asyncio.get_running_loop().time()
        self._mute_until = 0.0
        self._levels: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Serve the page until the call is over, the page is gone or signed out, or this process stops.

        A page whose process stops reconnects at another one.
        """
        parts = (
            self._read_page,
            self._read_call,
            self._attend,
            self._services.engine.stopping.wait,
            self._wait_for_sign_out,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                for part in parts:
                    tasks.create_task(self._end_after(part))
        except* (_ConnectionOver, ConnectionError):
            pass
        except* Exception:
            logger.exception("live socket failed", call_id=str(self._grant.call_id))
        finally:
            await self._send_action("leave")
            await self._socket.close()

    async def _end_after(self, part: Callable[[], Awaitable[object]]) -> None:
        """End the connection, which cancels its other parts, once one part has ended."""
        await part()
        raise _ConnectionOver

    async def _wait_for_sign_out(self) -> None:
        """Return when the user has signed out in that browser, or may no longer enter the organization."""
        grant = self._grant
        while True:
            await asyncio.sleep(ACCESS_CHECK_SECONDS)
            if grant.browser is not None and not await can_enter(
                self._services.database, grant.browser, grant.organization_id
            ):
                return

    # --- from the page to the call ---

    async def _read_page(self) -> None:
        # A quick page sends commands before the call knows its monitor.
        await self._attached.wait()
        while True:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    message = await self._socket.receive()
            except TimeoutError:
                return
            if message is None:
                return
            if isinstance(message, bytes):
                await self._handle_voice(message)
            else:
                await self._handle_command(message)

    async def _handle_voice(self, audio: bytes) -> None:
        has_call = self._state is not None and self._state.monitor_id == self._id
        moment = asyncio.get_running_loop().time()
        if not has_call or moment < self._mute_until or len(audio) % 2 or not 0 < len(audio) <= MAX_VOICE_BYTES:
            return
        if not await channel.send_voice(self._services.redis, self._holder, self._grant.call_id, self._id, audio):
            self._mute_until = moment + channel.RECONNECT_SECONDS

    async def _handle_command(self, message: str) -> None:
        try:
            command = _command.validate_json(message)
        except ValidationError:
            await self._send({"type": "refused", "action": None, "message": "The message was not understood."})
            return
        if command.type == "ping":
            return
        if not self._may_control:
            await self._send({"type": "refused", "action": command.type, "message": NOT_ALLOWED})
        elif not await self._send_action(
            command.type, text=command.text if isinstance(command, WhisperCommand) else ""
        ):
            await self._send({"type": "refused", "action": command.type, "message": UNREACHABLE})

    async def _send_action(self, action: channel.MonitorAction, *, text: str = "") -> bool:
        message = channel.MonitorMessage(
            monitor_id=self._id,
            supervisor=self._grant.supervisor,
            may_control=self._may_control,
            action=action,
            known_entries=self._known_entries,
            text=text,
        )
        return await channel.send_live_message(
            self._services.redis, self._holder, channel.LiveMessage(call_id=self._grant.call_id, monitor=message)
        )

    # --- from the call to the page ---

    async def _read_call(self) -> None:
        while True:
            try:
                async with self._services.redis.pubsub() as subscription:
                    await subscription.subscribe(channel.feed_channel(self._grant.call_id))
                    await self._send_action("attend")
                    async for message in receive_messages(subscription):
                        if await self._handle_update(channel.parse_feed_message(message["data"])):
                            return
            except (RedisError, OSError) as error:
                if isinstance(error, ConnectionError):
                    raise
                logger.warning("live call cannot be followed: Redis is unavailable", error=type(error).__name__)
                await asyncio.sleep(channel.RECONNECT_SECONDS)

    async def _handle_update(self, update: bytes | channel.Update) -> bool:
        """Pass an update on to the page; return whether the call is over."""
        self._updated_at = asyncio.get_running_loop().time()
        if isinstance(update, bytes):
            await self._send_audio(update)
        elif isinstance(update, SupervisionState):
            await self._send_state(update)
        elif isinstance(update, NewEntries):
            await self._send_entries(update)
        elif isinstance(update, channel.ActionRefused):
            if update.monitor_id == self._id:
                await self._send({"type": "refused", "action": update.action, "message": update.message})
        else:
            await self._send({"type": "ended", "reason": update.reason.value})
            return True
        return False

    async def _send_audio(self, frames: bytes) -> None:
        sides = np.frombuffer(frames, dtype="<i2").reshape(-1, 2).astype(np.float32) / 32768
        if len(sides):
            caller, agent = np.sqrt(np.mean(np.square(sides), axis=0))
            self._levels.append((float(caller), float(agent)))
        if len(self._levels) >= LEVEL_FRAMES:
            caller, agent = (round(max(side), 4) for side in zip(*self._levels, strict=True))
            self._levels.clear()
            await self._send({"type": "levels", "caller": caller, "agent": agent})
        if self._grant.access != "transcript":
            await self._socket.send(frames)

    async def _send_state(self, state: SupervisionState) -> None:
        if state == self._state:
            return
        self._state = state
        self._attached.set()
        holder: JsonValue = None
        if state.supervisor is not None:
            holder = {"name": state.supervisor.name, "you": state.monitor_id == self._id}
        await self._send({"type": "state", "holder": holder, "agent": state.agent})

    async def _send_entries(self, new: NewEntries) -> None:
        if new.first > self._known_entries:
            await self._send_action("attend")
            return
        for entry in new.entries[self._known_entries - new.first :]:
            self._known_entries += 1
            line = _entry.dump_python(entry, mode="json", exclude={"pauses"})
            await self._send({"type": "transcript", "entry": line})

    async def _attend(self) -> None:
        """Renew the monitor's lease every second; return once a call that sends nothing more is over or lost."""
        while True:
            await asyncio.sleep(ATTENDANCE_SECONDS)
            await self._send_action("attend")
            quiet = asyncio.get_running_loop().time() - self._updated_at
            if quiet < QUIET_SECONDS:
                continue
            call = await _find_call(self._services.database, self._grant)
            if call is None or is_over(call) or quiet > LOST_SECONDS:
                await self._send({"type": "ended", "reason": call.ended_reason if call else None})
                return

    async def _send(self, message: dict[str, JsonValue]) -> None:
        await self._socket.send(json.dumps(message))
