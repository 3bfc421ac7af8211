"""What happens in a live call, written to the database while the call goes on, so that a crash loses at most the last words."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self, TypeAlias

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.call import Supervisor, TranscriptEntry, TurnLatency
from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, TenantSession, now
from switchboard.foundation.events.catalog import CallTakeover
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import metrics
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.states import build_call_event

logger = structlog.get_logger()
RETRY_SECONDS = 1.0

Fact: TypeAlias = Callable[[TenantSession], Awaitable[None]]


class DatabaseCallLog:
    """Takes facts without waiting and writes them in order, from one task. Leaving it waits until all are written."""

    def __init__(self, database: Database, call: Call) -> None:
        self._database = database
        self._call = call
        self._facts: asyncio.Queue[Fact | None] = asyncio.Queue()
        self._position = 0
        self._person: Supervisor | None = None

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._facts.put_nowait(None)
        await self._writer

    def entry(self, entry: TranscriptEntry) -> None:
        """Something was said."""
        line = TranscriptLine(
            organization_id=self._call.organization_id,
            call_id=self._call.id,
            position=self._position,
            role=entry.role,
            content=entry.content,
            timestamp_ms=entry.started_ms,
            ended_ms=entry.ended_ms,
            interrupted=entry.interrupted,
            by_person=entry.by_person,
        )
        self._position += 1
        self._facts.put_nowait(partial(_add, line))

    def latency(self, latency: TurnLatency) -> None:
        """A turn was answered."""
        if latency.first_frame_ms is not None:
            metrics.turn_latency.observe(latency.first_frame_ms / 1000)

    def taken_over(self, person: Supervisor | None) -> None:
        """A person has the call, or, None, the agent has it again. The event, the audit log's entry and the call's row are one transaction."""
        before, self._person = self._person, person
        if person is not None:
            self._facts.put_nowait(partial(_take_over, self._call, person, now()))
        elif before is not None:
            self._facts.put_nowait(partial(_hand_back, self._call, before))

    async def _write(self) -> None:
        while (fact := await self._facts.get()) is not None:
            await self._keep(fact)

    async def _keep(self, fact: Fact) -> None:
        for patience in (RETRY_SECONDS, RETRY_SECONDS * 5, None):
            try:
                async with self._database.tenant(self._call.organization_id) as session:
                    await fact(session)
            except (SQLAlchemyError, OSError):
                logger.exception(
                    "what happened in a call was not written", call_id=str(self._call.id), last_try=patience is None
                )
                if patience is not None:
                    await asyncio.sleep(patience)
            else:
                return


async def _add(line: TranscriptLine, session: TenantSession) -> None:
    session.add(TranscriptLine(**line.model_dump()))


async def _take_over(held: Call, person: Supervisor, at: datetime, session: TenantSession) -> None:
    call = await calls.get_call(session, held.id, lock=True)
    # A commit whose answer was lost is tried again.
    if call.taken_over_at == at:
        return
    call.taken_over_by, call.taken_over_at = person.name, at
    await publish(session, build_call_event(CallTakeover, call), depth=call.cause_depth)
    record_audit_as(session, call.organization_id, f"user:{person.user_id}", AuditAction.CALL_TAKEN_OVER, call.id)


async def _hand_back(held: Call, person: Supervisor, session: TenantSession) -> None:
    call = await calls.get_call(session, held.id, lock=True)
    if call.taken_over_at is not None:
        call.taken_over_by = call.taken_over_at = None
        record_audit_as(session, call.organization_id, f"user:{person.user_id}", AuditAction.CALL_HANDED_BACK, call.id)
