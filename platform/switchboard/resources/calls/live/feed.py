"""What a live call tells its monitors, over Redis: the side that holds the call, and how the other side reads it."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

import structlog
from pydantic import BaseModel, Field, TypeAdapter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.call import EndedReason, TranscriptEntry
from switchboard.engine.conversation.handoff.supervision import SupervisionState

logger = structlog.get_logger()
MAX_WAITING = 100
RETRY_SECONDS = 1.0
AUDIO, UPDATE = b"a", b"n"


class StateUpdate(BaseModel):
    """Who has the call and what the agent does."""

    type: Literal["state"] = "state"
    state: SupervisionState


class EntriesUpdate(BaseModel):
    """What was said, from the transcript's position `first` on."""

    type: Literal["entries"] = "entries"
    first: int
    entries: list[TranscriptEntry]


class ActionRefused(BaseModel):
    """Why what a monitor asked for was not done."""

    type: Literal["not_done"] = "not_done"
    monitor_id: UUID
    action: str
    message: str


class CallOver(BaseModel):
    """The call is over."""

    type: Literal["over"] = "over"
    reason: EndedReason


Update: TypeAlias = Annotated[StateUpdate | EntriesUpdate | ActionRefused | CallOver, Field(discriminator="type")]
_news: TypeAdapter[StateUpdate | EntriesUpdate | ActionRefused | CallOver] = TypeAdapter(Update)


def feed_channel(call_id: UUID) -> str:
    """Where a call's monitors listen."""
    return f"live:call:{call_id}"


def parse_feed_message(data: bytes) -> bytes | StateUpdate | EntriesUpdate | ActionRefused | CallOver:
    """Audio frames as `Feed` has them, or news. Raises `ValueError`."""
    return data[1:] if data[:1] == AUDIO else _news.validate_json(data[1:])


class RedisMonitorFeed:
    """A call's `Feed`. What Redis does not take in time is lost, the oldest first: monitors ask again for what they miss."""

    def __init__(self, redis: Redis, call_id: UUID) -> None:
        self._redis = redis
        self._call_id = call_id
        self._waiting: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._wake = asyncio.Event()
        self._closed = False
        self._sending = asyncio.create_task(self._send())

    def audio(self, frames: bytes) -> None:
        """40 ms of both channels."""
        self._put(AUDIO + frames)

    def state(self, state: SupervisionState) -> None:
        """Who has the call and what the agent does, when it changes and once a second."""
        self._tell(StateUpdate(state=state))

    def entries(self, first: int, entries: Sequence[TranscriptEntry]) -> None:
        """What was said."""
        self._tell(EntriesUpdate(first=first, entries=list(entries)))

    def refused(self, monitor_id: UUID, action: str, message: str) -> None:
        """Something that a monitor asked for was not done."""
        self._tell(ActionRefused(monitor_id=monitor_id, action=action, message=message))

    def ended(self, reason: EndedReason) -> None:
        """The call is over."""
        self._tell(CallOver(reason=reason))

    def close(self) -> None:
        """Nothing more comes; what waits is still sent."""
        self._closed = True
        self._wake.set()

    def _tell(self, news: BaseModel) -> None:
        self._put(UPDATE + news.model_dump_json().encode())

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
                        "monitors hear nothing: Redis is away", call_id=str(self._call_id), error=type(error).__name__
                    )
                    if self._closed:
                        return
                    await asyncio.sleep(RETRY_SECONDS)
