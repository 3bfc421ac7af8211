"""Work on automations: record the runs that an event triggers, in the transaction that ends the trigger, and advance
them.
"""

from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter

from switchboard.foundation.database import Database, WriteSession, lock_name
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.events.models import Event
from switchboard.foundation.events.queries import mark_done
from switchboard.foundation.observability import metrics
from switchboard.foundation.web.schemas import Moment
from switchboard.foundation.work import Work
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.automations import queries
from switchboard.resources.automations.conditions import matches_filters
from switchboard.resources.automations.models import ActionRecord, Automation, AutomationRun
from switchboard.resources.automations.runs import AT_ONCE, EACH, take_run
from switchboard.resources.automations.schemas import Condition

MAX_DEPTH = 5
"""Depth above which an automation does not run on events that its own run caused
(docs/decisions/0009-automation-conditions-and-templates.md).
"""
LOOP = f"Stopped by the loop guard: a chain of {MAX_DEPTH} automation runs led to this event."

_timestamp: TypeAdapter[Any] = TypeAdapter(Moment)


async def evaluate_triggers(database: Database, *, organization_id: UUID, event_id: UUID) -> None:
    """Record a run for each automation that a new event triggers, unless they have been recorded."""
    async with database.write(organization_id) as session:
        # An advisory lock instead of the row's: the job that notifies plugins skips locked events.
        await lock_name(session, f"triggers of {event_id}")
        event = await queries.find_waiting_event(session, event_id)
        if event is None:
            return
        await open_content(session, event)
        # The context of filters, conditions, and templates: a webhook's body, and the event's identifiers.
        body: JsonObject = {
            "event": event.name,
            "data": event.data.value,
            "timestamp": _timestamp.dump_python(event.occurred_at, mode="json"),
            "id": str(event.id),
            "organization_id": str(event.organization_id),
        }
        # In the order of ids, so that two events never wait for each other's counters.
        for automation in await queries.list_triggered_automations(session, event):
            await _record(session, automation, event, body)
        await mark_done(session, event.id, "trigger_due_at")


async def _record(session: WriteSession, automation: Automation, event: Event, body: JsonObject) -> None:
    if not matches_filters(body, automation.trigger_filters):
        return
    run = AutomationRun(
        organization_id=automation.organization_id,
        automation_id=automation.id,
        event_id=event.id,
        trigger_event=event.name,
        event=Content(body),
        depth=event.depth + 1,
    )
    obstacle = LOOP if run.depth > MAX_DEPTH else _unmet(automation, body)
    run.error_message = Content(obstacle)
    records = [ActionRecord(type=action["type"], params=action["params"]) for action in automation.actions]
    if obstacle is None:
        run.due_at = run.created_at
        session.wake("take_run")
    else:
        run.status, run.completed_at = "skipped", run.created_at
        records = [record.model_copy(update={"status": "skipped"}) for record in records]
        metrics.automation_runs.labels(run.status).inc()
    run.keep(records)
    await seal_content(session, run)
    session.add(run)
    await queries.count_run(session, run)


def _unmet(automation: Automation, body: JsonObject) -> str | None:
    """Describe the first condition that does not hold; None if all hold."""
    for index, kept in enumerate(automation.conditions):
        condition = Condition.model_validate(kept)
        if not condition.holds(body):
            return f"conditions.{index} did not hold: {condition.field} {condition.operator}"
    return None


WORK: Final = (
    Work(evaluate_triggers, queries.TRIGGERS),
    Work(take_run, queries.DUE_RUNS, seconds=1, at_once=AT_ONCE, each=EACH),
)
