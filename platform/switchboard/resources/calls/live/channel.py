"""Messages to live calls over Redis.

The process that runs a call's media socket listens on two channels: `live:<node>` for messages, and `live:<node>:voice`
for the audio of supervisors who have taken a call over. `live:call:<call>` goes the other way, from a call to its
monitors. Lost messages do no lasting harm: the reconciler ends calls whose process is gone, and a monitor
reports every second that it is there and how much of the transcript it has.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

import structlog
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.call import EndedReason, MachineEvent, Supervisor, TransferTargetEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.supervision import CallOver, NewEntries, SupervisionRefused, SupervisionState
from switchboard.foundation.redis_client import receive_messages

logger = structlog.get_logger()
RECONNECT_SECONDS = 1.0
VOICE_HEADER_BYTES = 32

MonitorAction = Literal["attend", "leave", "whisper", "take_over", "hand_back", "hang_up"]


class MonitorMessage(BaseModel):
    """Action of a monitor.

    `attend` is repeated every second, with the number of transcript entries that the monitor has.
    """

    monitor_id: UUID
    supervisor: Supervisor
    may_control: bool
    action: MonitorAction
    known_entries: int = 0
    text: str = ""


class LiveMessage(BaseModel):
    """Message to a live call: a reason to end, a monitor's action, or a carrier event about the target of a transfer or
    a machine that answered.
    """

    call_id: UUID
    hang_up: EndedReason | None = None
    monitor: MonitorMessage | None = None
    target: TransferTargetEvent | None = None
    machine: MachineEvent | None = None


def _channel(node: str) -> str:
    return f"live:{node}"


def _voice_channel(node: str) -> str:
    return f"live:{node}:voice"


async def send_live_message(redis: Redis, node: str, message: LiveMessage) -> bool:
    """Send a message to a call and return whether its process received it.

    The reconciler ends the calls of a lost process.
    """
    return await _publish(redis, _channel(node), message.model_dump_json(exclude_none=True).encode())


async def send_voice(redis: Redis, node: str, call_id: UUID, monitor_id: UUID, audio: bytes) -> bool:
    """Send the audio of the supervisor at a monitor, 16-bit PCM at 8 kHz."""
    return await _publish(redis, _voice_channel(node), call_id.bytes + monitor_id.bytes + audio)


async def _publish(redis: Redis, channel: str, data: bytes) -> bool:
    try:
        return bool(await redis.publish(channel, data))
    except (RedisError, OSError) as error:
        logger.warning("message to a live call lost: Redis is unavailable", error=type(error).__name__)
        return False


async def listen_for_messages(redis: Redis, node: str, engine: CallEngine) -> None:
    """Pass messages on to this process's calls until canceled."""
    voice = _voice_channel(node).encode()
    while True:
        try:
            async with redis.pubsub() as subscription:
                await subscription.subscribe(_channel(node), voice)
                async for message in receive_messages(subscription):
                    try:
                        if message["channel"] == voice:
                            data = message["data"]
                            session = engine.find_session(UUID(bytes=data[:16]))
                            if session is not None:
                                monitor_id = UUID(bytes=data[16:VOICE_HEADER_BYTES])
                                session.supervision.speak(monitor_id, data[VOICE_HEADER_BYTES:])
                        else:
                            _handle_message(redis, engine, message["data"])
                    except Exception:
                        logger.exception("message to a live call failed")
        except (RedisError, OSError) as error:
            logger.warning("live calls receive no messages: Redis is unavailable", error=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)


def _handle_message(redis: Redis, engine: CallEngine, data: bytes) -> None:
    try:
        message = LiveMessage.model_validate_json(data)
    except ValidationError:
        logger.warning("message to a live call not understood")
        return
    if message.hang_up is not None:
        engine.end_call(message.call_id, message.hang_up)
    if message.monitor is not None:
        _handle_monitor(redis, engine, message.call_id, message.monitor)
    if message.target is not None and (session := engine.find_session(message.call_id)) is not None:
        session.transfer.handle_event(message.target)
    if message.machine is not None:
        engine.report_machine(message.call_id, message.machine)


def _handle_monitor(redis: Redis, engine: CallEngine, call_id: UUID, monitor: MonitorMessage) -> None:
    session = engine.find_session(call_id)
    if session is None:
        return
    supervision = session.supervision
    if monitor.action == "leave":
        supervision.detach(monitor.monitor_id)
        return
    # An action may overtake the monitor's first `attend`: each message goes over a connection of its own.
    if monitor.action == "attend" or not supervision.has_monitor(monitor.monitor_id):
        supervision.attach(
            monitor.monitor_id,
            monitor.supervisor,
            monitor.known_entries,
            lambda: RedisMonitorFeed(redis, call_id),
            may_control=monitor.may_control,
        )
    try:
        match monitor.action:
            case "whisper":
                supervision.whisper(monitor.monitor_id, monitor.text)
            case "take_over":
                supervision.take_over(monitor.monitor_id)
            case "hand_back":
                supervision.hand_back(monitor.monitor_id)
            case "hang_up":
                supervision.hang_up(monitor.monitor_id)
    except SupervisionRefused as error:
        if isinstance(supervision.feed, RedisMonitorFeed):
            supervision.feed.send(ActionRefused(monitor.monitor_id, monitor.action, str(error)))


# The other way: from a live call to its monitors.

MAX_WAITING = 100
FEED_RETRY_SECONDS = 1.0
AUDIO, UPDATE = b"a", b"n"


@dataclass(frozen=True, slots=True)
class ActionRefused:
    """Reason for which a monitor's action was refused."""

    monitor_id: UUID
    action: str
    message: str
    type: Literal["not_done"] = "not_done"


Update: TypeAlias = SupervisionState | NewEntries | ActionRefused | CallOver
_update: TypeAdapter[Update] = TypeAdapter(Annotated[Update, Field(discriminator="type")])


def feed_channel(call_id: UUID) -> str:
    """Return the Redis channel of a call's monitors."""
    return f"live:call:{call_id}"


def parse_feed_message(data: bytes) -> bytes | Update:
    """Parse a message into audio frames, as `MonitorFeed` describes them, or an update. Raises `ValueError`."""
    return data[1:] if data[:1] == AUDIO else _update.validate_json(data[1:])


class RedisMonitorFeed:
    """A call's `MonitorFeed`.

    Messages that Redis does not take in time are lost, the oldest first: monitors ask again for entries that they miss.
    """

    def __init__(self, redis: Redis, call_id: UUID) -> None:
        self._redis = redis
        self._call_id = call_id
        self._waiting: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._wake = asyncio.Event()
        self._closed = False
        self._sending = asyncio.create_task(self._send())

    def send_audio(self, frames: bytes) -> None:
        """Send 40 milliseconds of both channels."""
        self._put(AUDIO + frames)

    def send(self, update: Update) -> None:
        self._put(UPDATE + _update.dump_json(update))

    def close(self) -> None:
        """Accept no more messages; those that wait are still sent."""
        self._closed = True
        self._wake.set()

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._wake.set()

    async def _send(self) -> None:
        while not (self._closed and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                try:
                    await self._redis.publish(feed_channel(self._call_id), self._waiting.popleft())
                except (RedisError, OSError) as error:
                    logger.warning(
                        "monitors receive nothing: Redis is unavailable",
                        call_id=str(self._call_id),
                        error=type(error).__name__,
                    )
                    if self._closed:
                        return
                    await asyncio.sleep(FEED_RETRY_SECONDS)
