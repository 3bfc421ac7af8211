"""Statements about automations and their runs, and about what triggers and limits them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import func, update
from sqlmodel import col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, WriteSession, is_among, now
from switchboard.foundation.events.models import DueEvent, Event
from switchboard.foundation.work import DueRows
from switchboard.resources.automations.models import Automation, AutomationRun
from switchboard.resources.identity.queries import is_active
from switchboard.resources.sms.models import SmsMessage


async def list_automations_using(session: ReadSession, action_type: str) -> list[Automation]:
    rows = session.select(Automation).where(col(Automation.actions).contains([{"type": action_type}]))
    return list((await session.exec(rows.order_by(col(Automation.name)))).all())


async def list_triggered_automations(session: ReadSession, event: Event) -> Sequence[Automation]:
    """List the automations that an event triggers, in the order of ids."""
    wanted = (
        is_among(col(Automation.id), event.triggered),
        col(Automation.enabled),
        col(Automation.trigger_type) == event.name,
    )
    return (await session.exec(session.select(Automation).where(*wanted).order_by(col(Automation.id)))).all()


async def count_run(session: WriteSession, run: AutomationRun) -> None:
    """Count a new run of an automation."""
    counted = update(Automation).where(session.owns(Automation), col(Automation.id) == run.automation_id)
    last = func.greatest(col(Automation.last_run_at), run.created_at)
    await session.exec(counted.values(run_count=col(Automation.run_count) + 1, last_run_at=last))


async def find_waiting_event(session: ReadSession, event_id: UUID) -> Event | None:
    """Return an event whose runs have not been recorded; None if they have."""
    rows = session.select(Event).join(DueEvent, col(DueEvent.id) == col(Event.id))
    waiting = rows.where(col(Event.id) == event_id, col(DueEvent.trigger_due_at).is_not(None))
    return (await session.exec(waiting)).one_or_none()


TRIGGERS: Final = DueRows(DueEvent, "trigger_due_at")
"""Events whose runs have not been recorded."""


def select_automation_runs(
    session: ReadSession, automation_id: UUID, *, status: str | None = None
) -> SelectOfScalar[AutomationRun]:
    rows = session.select(AutomationRun).where(col(AutomationRun.automation_id) == automation_id)
    return rows if status is None else rows.where(col(AutomationRun.status) == status)


async def lock_due_run(session: WriteSession, run_id: UUID) -> AutomationRun | None:
    """Return a run whose next action is due, locked; None if it is not due, or another worker has locked it."""
    due = session.select(AutomationRun).where(col(AutomationRun.id) == run_id, col(AutomationRun.due_at) <= now())
    return (await session.exec(due.with_for_update(skip_locked=True))).one_or_none()


async def lock_run_with_token(session: WriteSession, run_id: UUID, token: UUID) -> AutomationRun | None:
    """Return a run, locked; None if it was deleted, or has another lease token."""
    mine = session.select(AutomationRun).where(col(AutomationRun.id) == run_id, col(AutomationRun.lease_token) == token)
    return (await session.exec(mine.with_for_update())).one_or_none()


DUE_RUNS: Final = DueRows(AutomationRun, "due_at", (is_active(AutomationRun),))
"""Runs whose next action is due, and that no worker has claimed. Those of a suspended organization wait."""


async def count_automated_messages(session: ReadSession, to_number: str) -> int:
    """Count the text messages that automations have sent to a number within the hour."""
    rows = session.select(SmsMessage).where(
        col(SmsMessage.created_at) > now() - timedelta(hours=1),
        col(SmsMessage.author) == "automation",
        col(SmsMessage.to_number) == to_number,
    )
    return await session.count(rows)
