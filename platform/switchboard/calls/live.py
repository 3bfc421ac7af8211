"""Messages to live calls: over Redis, to the process that holds the call's media socket."""

import asyncio
from uuid import UUID

import structlog
from pydantic import BaseModel, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.conversation.call import EndedReason, TargetTold
from switchboard.conversation.engine import CallEngine

logger = structlog.get_logger()
RECONNECT_SECONDS = 1.0


class LiveMessage(BaseModel):
    """What a live call is told: to end, and why; or what has become of the target that it is to be transferred to."""

    call_id: UUID
    hang_up: EndedReason | None = None
    target: TargetTold | None = None


def _channel(node: str) -> str:
    return f"live:{node}"


async def tell(redis: Redis, node: str, message: LiveMessage) -> None:
    """Tell a call something; lost when its process is gone, whose calls the sweep ends."""
    try:
        await redis.publish(_channel(node), message.model_dump_json())
    except (RedisError, OSError) as error:
        logger.warning("message to a live call lost: Redis is away", error=type(error).__name__)


async def listen(redis: Redis, node: str, engine: CallEngine) -> None:
    """Pass messages on to this process's calls, until cancelled."""
    while True:
        try:
            async with redis.pubsub(ignore_subscribe_messages=True) as subscription:
                await subscription.subscribe(_channel(node))
                async for message in subscription.listen():
                    _pass_on(engine, message["data"])
        except (RedisError, OSError) as error:
            logger.warning("live calls cannot be told anything: Redis is away", error=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)


def _pass_on(engine: CallEngine, data: bytes) -> None:
    try:
        message = LiveMessage.model_validate_json(data)
    except ValidationError:
        logger.warning("message to a live call not understood")
        return
    if message.hang_up is not None:
        engine.hang_up(message.call_id, message.hang_up)
    if message.target is not None and (control := engine.control(message.call_id)) is not None:
        control.told(message.target)
