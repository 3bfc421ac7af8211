"""Feed from a live call to its monitors over Redis: the sender in the call's process, and the receivers' parser."""

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
    """State of the call's supervision and of the agent."""

    type: Literal["state"] = "state"
    state: SupervisionState


class EntriesUpdate(BaseModel):
    """Entries of the transcript from position `first` on."""

    type: Literal["entries"] = "entries"
    first: int
    entries: list[TranscriptEntry]


class ActionRefused(BaseModel):
    """Reason for which a monitor's action was refused."""

    type: Literal["not_done"] = "not_done"
    monitor_id: UUID
    action: str
    message: str


class CallOver(BaseModel):
    """End of the call."""

    type: Literal["over"] = "over"
    reason: EndedReason


Update: TypeAlias = StateUpdate | EntriesUpdate | ActionRefused | CallOver
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

    def send_state(self, state: SupervisionState) -> None:
        """Send the state, when it changes and once a second."""
        self._put_update(StateUpdate(state=state))

    def send_entries(self, first: int, entries: Sequence[TranscriptEntry]) -> None:
        """Send entries of the transcript."""
        self._put_update(EntriesUpdate(first=first, entries=list(entries)))

    def send_refusal(self, monitor_id: UUID, action: str, message: str) -> None:
        """Tell a monitor that its action was refused."""
        self._put_update(ActionRefused(monitor_id=monitor_id, action=action, message=message))

    def send_end(self, reason: EndedReason) -> None:
        """Send the end of the call."""
        self._put_update(CallOver(reason=reason))

    def close(self) -> None:
        """Accept no more messages; those that wait are still sent."""
        self._closed = True
        self._wake.set()

    def _put_update(self, update: Update) -> None:
        self._put(UPDATE + update.model_dump_json().encode())

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
                    await asyncio.sleep(RETRY_SECONDS)
