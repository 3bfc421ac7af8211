"""Log of a live call in the database, written while the call goes on, so that a crash loses a few words at most."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.call import (
    HandoffRecord,
    Intervention,
    Supervisor,
    TranscriptEntry,
    TurnLatency,
    VariableRecord,
)
from switchboard.engine.disclosure.disclosure import ConsentRecord
from switchboard.foundation.audit import AuditAction, AuditEntry, record_audit_as
from switchboard.foundation.database import Database, WriteSession, now, retry_while_away
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.catalog import CallTakeover
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import metrics
from switchboard.foundation.web.paging import lock_row
from switchboard.resources.calls import call_queue
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.queries import delete_lines
from switchboard.resources.calls.states import build_call_event, keep_variables, record_handoff, record_interventions

logger = structlog.get_logger()
RETRY_SECONDS = 120.0

Write: TypeAlias = Callable[[WriteSession], Awaitable[None]]


class DatabaseCallLog:
    """Queues writes and executes them in order in one task. Leaving the context waits until all are done."""

    def __init__(self, database: Database, call: Call) -> None:
        self._database = database
        self._call = call
        self._writes: asyncio.Queue[Write | None] = asyncio.Queue()
        self._position = 0
        self._supervisor: Supervisor | None = None
        self._asked_at: datetime | None = None
        self._has_unfinished = False

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._has_unfinished:
            self._writes.put_nowait(partial(delete_lines, call_id=self._call.id, first=self._position))
        self._writes.put_nowait(None)
        await self._writing

    def record_entry(self, entry: TranscriptEntry) -> None:
        self._record_line(entry)
        self._position += 1

    def record_unfinished(self, entry: TranscriptEntry) -> None:
        """Record an utterance in progress, unless earlier writes wait for the database."""
        if self._writes.empty():
            self._record_line(entry, unfinished=True)

    def _record_line(self, entry: TranscriptEntry, *, unfinished: bool = False) -> None:
        line = TranscriptLine(
            organization_id=self._call.organization_id,
            call_id=self._call.id,
            position=self._position,
            unfinished=unfinished,
            **{**asdict(entry), "content": Content(entry.content)},
        )
        replace = partial(delete_lines, call_id=self._call.id, first=self._position) if self._has_unfinished else None
        self._has_unfinished = unfinished
        self._writes.put_nowait(partial(_write_line, line, replace))

    def record_latency(self, latency: TurnLatency) -> None:
        """Record the latency of a turn in the metrics."""
        if latency.first_frame_ms is not None:
            seconds = latency.first_frame_ms / 1000
            metrics.turn_latency.observe(seconds)
            label = metrics.get_organization_label(self._call.organization_id)
            metrics.organization_turn_latency.labels(label).observe(seconds)

    def record_takeover(self, supervisor: Supervisor | None) -> None:
        """Record a takeover or, with None, the return of the call to the agent.

        The event, the audit log's entry and the call's row are written in one transaction.
        """
        before, self._supervisor = self._supervisor, supervisor
        if supervisor is not None:
            self._writes.put_nowait(partial(_record_takeover, self._call, supervisor, now()))
        elif before is not None:
            self._writes.put_nowait(partial(_record_return, self._call, before))

    def record_whisper(self, supervisor: Supervisor) -> None:
        """Record in the audit log who whispered."""
        entry = AuditEntry(
            organization_id=self._call.organization_id,
            actor=f"user:{supervisor.user_id}",
            action=AuditAction.CALL_WHISPERED.value,
            subject=str(self._call.id),
        )
        self._writes.put_nowait(partial(_add_entry, entry))

    def record_handoff(self, handoff: HandoffRecord) -> None:
        """Record a hand-off in the call's row, with its event."""
        self._writes.put_nowait(partial(_record_handoff, self._call, handoff))

    def record_variable(self, variable: VariableRecord) -> None:
        """Record a variable in the call's row."""
        self._writes.put_nowait(partial(_record_variable, self._call.id, variable))

    def record_intervention(self, intervention: Intervention) -> None:
        """Record in the call's row what an agent was kept from saying."""
        self._writes.put_nowait(partial(_record_intervention, self._call.id, intervention))

    def record_consent(self, consent: ConsentRecord) -> None:
        """Record the notice when it begins, and the answer when there is one."""
        if self._asked_at is None:
            self._asked_at = now()
        stored = {
            "rules": list(consent.disclosure.rules),
            "place": consent.disclosure.place,
            "mode": consent.disclosure.consent,
            "notice": consent.spoken,
            "asked_at": self._asked_at.isoformat(),
            "asked_ms": consent.asked_ms,
            "answer": consent.answer,
            "by": consent.by,
            "heard": consent.heard,
            "answered_at": None if consent.answered_ms is None else now().isoformat(),
            "answered_ms": consent.answered_ms,
            "recording_offset_ms": consent.recording_offset_ms,
        }
        self._writes.put_nowait(partial(_save_consent, self._call.id, stored))

    async def _run(self) -> None:
        while (write := await self._writes.get()) is not None:
            try:
                await retry_while_away(partial(self._attempt, write), seconds=RETRY_SECONDS)
            except (SQLAlchemyError, OSError):
                logger.exception("call log was not written", call_id=str(self._call.id))

    async def _attempt(self, write: Write) -> None:
        async with self._database.write(self._call.organization_id) as session:
            await write(session)


async def _write_line(line: TranscriptLine, replace: Write | None, session: WriteSession) -> None:
    """Write a line, unless an earlier attempt was committed."""
    if replace is not None:
        await replace(session)
    await seal_content(session, line)
    await session.insert_if_new(line)


async def _add_entry(entry: AuditEntry, session: WriteSession) -> None:
    await session.merge(AuditEntry(**entry.model_dump()))  # an earlier attempt may have been committed


async def _save_consent(call_id: UUID, consent: dict[str, Any], session: WriteSession) -> None:
    call = await lock_row(session, Call, call_id)
    call.consent = consent


async def _record_handoff(live: Call, handoff: HandoffRecord, session: WriteSession) -> None:
    await record_handoff(session, await lock_row(session, Call, live.id), handoff)


async def _record_variable(call_id: UUID, variable: VariableRecord, session: WriteSession) -> None:
    await keep_variables(session, await lock_row(session, Call, call_id), [variable])


async def _record_intervention(call_id: UUID, intervention: Intervention, session: WriteSession) -> None:
    record_interventions(await lock_row(session, Call, call_id), [intervention])


async def _record_takeover(live: Call, supervisor: Supervisor, at: datetime, session: WriteSession) -> None:
    call = await lock_row(session, Call, live.id)
    # A write is retried even if its commit succeeded and only the database's reply was lost.
    if call.taken_over_at == at:
        return
    call.taken_over_by, call.taken_over_at = supervisor.name, at
    await call_queue.answer_waiting(session, call.id, supervisor.name)
    await publish(session, await build_call_event(session, CallTakeover, call), depth=call.cause_depth)
    record_audit_as(session, call.organization_id, f"user:{supervisor.user_id}", AuditAction.CALL_TAKEN_OVER, call.id)


async def _record_return(live: Call, supervisor: Supervisor, session: WriteSession) -> None:
    call = await lock_row(session, Call, live.id)
    if call.taken_over_at is not None:
        call.taken_over_by = call.taken_over_at = None
        record_audit_as(
            session, call.organization_id, f"user:{supervisor.user_id}", AuditAction.CALL_HANDED_BACK, call.id
        )
