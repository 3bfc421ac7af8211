"""A live call's transcript, written to the database while the call goes on, so that a crash loses at most the last words."""

import asyncio
from types import TracebackType
from typing import Self

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.calls.models import Call, TranscriptLine
from switchboard.conversation.call import TranscriptEntry, TurnLatency
from switchboard.database import Database
from switchboard.observability import metrics

logger = structlog.get_logger()
RETRY_SECONDS = 1.0


class DatabaseCallLog:
    """Takes entries without waiting and writes them in order, from one task. Leaving it waits until all are written."""

    def __init__(self, database: Database, call: Call) -> None:
        self._database = database
        self._call = call
        self._entries: asyncio.Queue[TranscriptEntry | None] = asyncio.Queue()
        self._position = 0

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._entries.put_nowait(None)
        await self._writer

    def entry(self, entry: TranscriptEntry) -> None:
        """Something was said."""
        self._entries.put_nowait(entry)

    def latency(self, latency: TurnLatency) -> None:
        """A turn was answered."""
        if latency.first_frame_ms is not None:
            metrics.turn_latency.observe(latency.first_frame_ms / 1000)

    async def _write(self) -> None:
        while (entry := await self._entries.get()) is not None:
            line = TranscriptLine(
                organization_id=self._call.organization_id,
                call_id=self._call.id,
                position=self._position,
                role=entry.role,
                content=entry.content,
                timestamp_ms=entry.started_ms,
                ended_ms=entry.ended_ms,
                interrupted=entry.interrupted,
            )
            self._position += 1
            await self._keep(line)

    async def _keep(self, line: TranscriptLine) -> None:
        for patience in (RETRY_SECONDS, RETRY_SECONDS * 5, None):
            try:
                async with self._database.tenant(self._call.organization_id) as session:
                    session.add(TranscriptLine(**line.model_dump()))
            except (SQLAlchemyError, OSError):
                logger.exception("transcript line not written", call_id=str(self._call.id), last_try=patience is None)
                if patience is not None:
                    await asyncio.sleep(patience)
            else:
                return
