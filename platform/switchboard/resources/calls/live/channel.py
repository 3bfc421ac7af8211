"""Messages to and from live calls, over Redis: to the process that holds the call's media socket, and from it to whoever follows the call.

`live:<node>` takes messages for the calls that a process holds, `live:<node>:voice` what people say who have taken one over,
`live:call:<call>` what a call tells its monitors. What is lost here is made good or is over: the sweep ends calls whose process is gone, and
a monitor says every second that it is there and how much it knows.
"""

import asyncio
from typing import Literal
from uuid import UUID

import structlog
from pydantic import BaseModel, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.call import EndedReason, Supervisor, TransferTargetEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.handoff.supervision import SupervisionRefused
from switchboard.resources.calls.live.feed import RedisMonitorFeed

logger = structlog.get_logger()
RECONNECT_SECONDS = 1.0
VOICE_HEADER_BYTES = 32

MonitorAction = Literal["attend", "leave", "whisper", "take_over", "hand_back", "hang_up"]


class MonitorMessage(BaseModel):
    """What a monitor does: it attends (again and again, saying how many entries of the transcript are `known`), leaves, or acts for its person."""

    monitor_id: UUID
    person: Supervisor
    may_control: bool
    action: MonitorAction
    known: int = 0
    text: str = ""


class LiveMessage(BaseModel):
    """What a live call is told: to end, and why; what one of its monitors does; what has become of the target that it is to be transferred to."""

    call_id: UUID
    hang_up: EndedReason | None = None
    monitor: MonitorMessage | None = None
    target: TransferTargetEvent | None = None


def _channel(node: str) -> str:
    return f"live:{node}"


def _voice_channel(node: str) -> str:
    return f"live:{node}:voice"


async def send_live_message(redis: Redis, node: str, message: LiveMessage) -> bool:
    """Tell a call something; whether its process was there to hear it. Lost when it is gone, whose calls the sweep ends."""
    return await _publish(redis, _channel(node), message.model_dump_json(exclude_none=True).encode())


async def send_voice(redis: Redis, node: str, call_id: UUID, monitor_id: UUID, audio: bytes) -> bool:
    """What the person at a monitor says, 16-bit PCM at 8 kHz."""
    return await _publish(redis, _voice_channel(node), call_id.bytes + monitor_id.bytes + audio)


async def _publish(redis: Redis, channel: str, data: bytes) -> bool:
    try:
        return bool(await redis.publish(channel, data))
    except (RedisError, OSError) as error:
        logger.warning("message to a live call lost: Redis is away", error=type(error).__name__)
        return False


async def listen_for_messages(redis: Redis, node: str, engine: CallEngine) -> None:
    """Pass messages on to this process's calls, until cancelled."""
    voice = _voice_channel(node).encode()
    while True:
        try:
            async with redis.pubsub(ignore_subscribe_messages=True) as subscription:
                await subscription.subscribe(_channel(node), voice)
                async for message in subscription.listen():
                    try:
                        if message["channel"] == voice:
                            _hear(engine, message["data"])
                        else:
                            _pass_on(redis, engine, message["data"])
                    except Exception:
                        logger.exception("a message to a live call failed")
        except (RedisError, OSError) as error:
            logger.warning("live calls cannot be told anything: Redis is away", error=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)


def _hear(engine: CallEngine, data: bytes) -> None:
    control = engine.control(UUID(bytes=data[:16]))
    if control is not None:
        control.desk.speak(UUID(bytes=data[16:VOICE_HEADER_BYTES]), data[VOICE_HEADER_BYTES:])


def _pass_on(redis: Redis, engine: CallEngine, data: bytes) -> None:
    try:
        message = LiveMessage.model_validate_json(data)
    except ValidationError:
        logger.warning("message to a live call not understood")
        return
    if message.hang_up is not None:
        engine.hang_up(message.call_id, message.hang_up)
    if message.monitor is not None:
        _attend(redis, engine, message.call_id, message.monitor)
    if message.target is not None and (control := engine.control(message.call_id)) is not None:
        control.told(message.target)


def _attend(redis: Redis, engine: CallEngine, call_id: UUID, monitor: MonitorMessage) -> None:
    control = engine.control(call_id)
    if control is None:
        return
    desk = control.desk
    if monitor.action == "leave":
        desk.detach(monitor.monitor_id)
        return
    # What is asked may come before the word that somebody is there: each message goes by a connection of its own.
    if monitor.action == "attend" or not desk.knows(monitor.monitor_id):
        desk.attach(
            monitor.monitor_id,
            monitor.person,
            monitor.known,
            lambda: RedisMonitorFeed(redis, call_id),
            may_control=monitor.may_control,
        )
    try:
        match monitor.action:
            case "whisper":
                desk.whisper(monitor.text)
            case "take_over":
                desk.take_over(monitor.monitor_id)
            case "hand_back":
                desk.hand_back(monitor.monitor_id)
            case "hang_up":
                desk.hang_up(monitor.monitor_id)
    except SupervisionRefused as error:
        if isinstance(desk.feed, RedisMonitorFeed):
            desk.feed.refused(monitor.monitor_id, monitor.action, str(error))
