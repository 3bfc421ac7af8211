"""Advance runs: a worker claims a run, takes its next action, records the result, and releases the run.

The rows are the queue. A run is claimed for each of its actions, so that another worker goes on if this one dies.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import structlog
from pydantic import ValidationError

from switchboard.engine.providers.instances import ExtensionNotAvailable, Extensions
from switchboard.foundation.database import Database, WriteSession, new_id, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.foundation.web.errors import ApiError, ValidationFailed
from switchboard.plugin_sdk import (
    ActionContext,
    ActionError,
    ActionParams,
    ActionPostponed,
    AutomationAction,
    JsonObject,
)
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.automations import queries, templates
from switchboard.resources.automations.actions import ActionServices, DatabaseAction, OutboundAction
from switchboard.resources.automations.models import ActionRecord, AutomationRun
from switchboard.resources.identity.service import is_suspended

logger = structlog.get_logger()
RETRY_DELAYS = (timedelta(seconds=5), timedelta(seconds=30))
MAX_ATTEMPTS = len(RETRY_DELAYS) + 1
ACTION_SECONDS = 30.0
LEASE = timedelta(seconds=60)
MAX_RESULT_CHARACTERS = 16_000
MAX_ERROR_CHARACTERS = 1_000
LOST = "The event or the actions cannot be decrypted: their key was destroyed, or they were altered."


@dataclass(frozen=True, slots=True)
class _Step:
    """An action that this worker has claimed; `token` is the run's lease token."""

    run: AutomationRun
    index: int
    record: ActionRecord
    token: UUID

    @property
    def context(self) -> ActionContext:
        run = self.run
        key = f"{run.id}-{self.index}"
        return ActionContext(
            run.organization_id, run.automation_id, run.id, key, run.event.value, self.record.started_at or now()
        )


async def advance_run(extensions: Extensions, services: ActionServices, organization_id: UUID, run_id: UUID) -> bool:
    """Take a run's next action; return False if it is not due or another worker has claimed it."""
    database = extensions.database
    step = await _claim(database, organization_id, run_id)
    if step is None:
        return False
    try:
        await _act(extensions, services, step)
    except ActionPostponed as postponed:
        await _postpone(database, step, postponed.until)
    except ActionError as error:
        await _fail(database, step, error.message, retryable=error.retryable)
    except ExtensionNotAvailable as error:
        await _fail(database, step, error.message, retryable=False)
    except ApiError as error:
        await _fail(database, step, error.detail, retryable=False)
    except TimeoutError:
        await _fail(database, step, f"The action took longer than {ACTION_SECONDS:.0f} seconds.", retryable=True)
    except Exception as error:  # noqa: BLE001 - a plugin's action may raise anything, and its run must end all the same
        kind = extensions.registry.action(step.record.type)
        if kind is not None:
            record_extension_fault("action broke", kind, "run", error, run_id=str(run_id))
        await _fail(database, step, f"The action raised {type(error).__name__}.", retryable=True)
    return True


async def _claim(database: Database, organization_id: UUID, run_id: UUID) -> _Step | None:
    async with database.write(organization_id) as session:
        run = await queries.lock_due_run(session, run_id)
        if run is None or await is_suspended(session) or await _end_lost(session, run):
            return None
        records = run.records()
        index = next(place for place, record in enumerate(records) if record.status in ("pending", "running"))
        record = records[index]
        if record.attempts == MAX_ATTEMPTS:
            await _end_failed(session, run, index, "The worker stopped during each attempt.")
            return None
        record.attempts += 1
        record.status, record.started_at = "running", record.started_at or now()
        run.keep(records)
        await seal_content(session, run)
        run.lease_token, run.due_at = new_id(), now() + LEASE
        return _Step(run, index, record, run.lease_token)


async def _act(extensions: Extensions, services: ActionServices, step: _Step) -> None:
    """Run the action and record its result. Any exception of the action propagates and rolls back what it wrote."""
    database, organization_id = extensions.database, step.run.organization_id
    kind = extensions.registry.action(step.record.type)
    if kind is None:
        raise ActionError(f"no plugin provides the action {step.record.type}", retryable=False)
    params = _render_params(kind, step)
    async with asyncio.timeout(ACTION_SECONDS):
        if issubclass(kind, DatabaseAction):
            async with database.write(organization_id) as session:
                run = await _lock_claimed_run(session, step)
                if run is not None:
                    session.cause_depth = run.depth
                    await _complete(session, run, step, await kind(session).run(step.context, params))
            return
        action = (
            kind(services, step.run.depth)
            if issubclass(kind, OutboundAction)
            else await extensions.create(organization_id, kind)
        )
        result = await action.run(step.context, params)
    async with database.write(organization_id) as session:
        run = await _lock_claimed_run(session, step)
        if run is not None:
            await _complete(session, run, step, result)


def _render_params(kind: type[AutomationAction[ActionParams]], step: _Step) -> ActionParams:
    """Render the parameters for this event. Raises `ActionError` if they do not validate."""
    try:
        return kind.Params.model_validate(templates.render_params(step.record.params, step.run.event.value))
    except templates.TemplateFailed as failure:
        raise ActionError(str(failure), retryable=False) from None
    except ValidationError as error:
        raise ActionError(f"params.{ValidationFailed.from_error(error).detail}", retryable=False) from None


async def _lock_claimed_run(session: WriteSession, step: _Step) -> AutomationRun | None:
    """Return the run, locked; None if it was deleted, lost, or another worker has claimed it."""
    run = await queries.lock_run_with_token(session, step.run.id, step.token)
    if run is None:
        metrics.leases_lost.labels("automation_run").inc()
    return None if run is None or await _end_lost(session, run) else run


async def _end_lost(session: WriteSession, run: AutomationRun) -> bool:
    """End a run whose key was destroyed; return whether it was."""
    await open_content(session, run)
    if run.is_lost:
        run.error_message = Content(LOST)
        await seal_content(session, run)
        _end(run, "failed", now())
    return run.is_lost


async def _complete(session: WriteSession, run: AutomationRun, step: _Step, result: JsonObject) -> None:
    """Record an action's result, redacted, and make the next action due. Raises `ActionError` for a result that cannot
    be stored.
    """
    try:
        size = len(json.dumps(result, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError):
        raise ActionError("The action's result is not JSON.", retryable=False) from None
    if size > MAX_RESULT_CHARACTERS:
        raise ActionError(f"The action's result is longer than {MAX_RESULT_CHARACTERS} characters.", retryable=False)
    redactor = await open_redactor(session, None)
    await redactor.search_json(result)
    result = await redactor.redact_json(result, for_model=False)
    records, moment = run.records(), now()
    record = records[step.index]
    record.status, record.result, record.error, record.completed_at = "completed", result, None, moment
    run.keep(records)
    await seal_content(session, run)
    run.lease_token = None
    if step.index + 1 == len(records):
        _end(run, "completed", moment)
    else:
        run.due_at = moment


async def _postpone(database: Database, step: _Step, until: datetime) -> None:
    """Make the run due again at the postponed time."""
    async with database.write(step.run.organization_id) as session:
        run = await _lock_claimed_run(session, step)
        if run is not None:
            records = run.records()
            records[step.index].attempts -= 1
            run.keep(records)
            await seal_content(session, run)
            run.lease_token, run.due_at = None, until


async def _fail(database: Database, step: _Step, message: str, *, retryable: bool) -> None:
    """Record a failed attempt, and schedule another one if a retry may help; otherwise end the run."""
    async with database.write(step.run.organization_id) as session:
        run = await _lock_claimed_run(session, step)
        if run is None:
            return
        run.lease_token = None
        redactor = await open_redactor(session, None)
        await redactor.search(message)
        message = redactor.redact(message).kept
        if not retryable or step.record.attempts == MAX_ATTEMPTS:
            await _end_failed(session, run, step.index, message)
            return
        records = run.records()
        records[step.index].error = message[:MAX_ERROR_CHARACTERS]
        run.keep(records)
        await seal_content(session, run)
        run.due_at = now() + RETRY_DELAYS[step.record.attempts - 1]


async def _end_failed(session: WriteSession, run: AutomationRun, index: int, message: str) -> None:
    """Record the permanent failure of an action; the remaining actions are skipped."""
    records, moment = run.records(), now()
    failed, message = records[index], message[:MAX_ERROR_CHARACTERS]
    failed.status, failed.error, failed.completed_at = "failed", message, moment
    for record in records[index + 1 :]:
        record.status = "skipped"
    run.keep(records)
    run.error_message = Content(f"actions.{index} ({failed.type}) failed: {message}")
    await seal_content(session, run)
    _end(run, "failed", moment)


def _end(run: AutomationRun, status: Literal["completed", "failed"], moment: datetime) -> None:
    """End the run at the time of its last action."""
    run.status, run.completed_at, run.due_at, run.lease_token = status, moment, None, None
    metrics.automation_runs.labels(status).inc()


AT_ONCE = 64
EACH = 8
"""Runs of one organization at the same time, so that its slow endpoints do not delay other organizations."""
TURN_SECONDS = 60.0
"""Time after which a run with many actions gives its place to others."""


async def take_run(extensions: Extensions, services: ActionServices, *, organization_id: UUID, run_id: UUID) -> None:
    """Advance a run until it has to wait, or its turn is over."""
    until = time.monotonic() + TURN_SECONDS
    with metrics.leases_held.labels("automation_run").track_inprogress():
        while await advance_run(extensions, services, organization_id, run_id) and time.monotonic() < until:
            pass
