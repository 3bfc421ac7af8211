"""Business rules of automations."""

from collections.abc import Iterable
from uuid import UUID

from sqlmodel import col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.events.outbox import set_trigger
from switchboard.foundation.jobs import wake
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk import AutomationAction
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations.models import ActionRecord, Automation, AutomationRun
from switchboard.resources.automations.schemas import AutomationCreate, AutomationOut, AutomationUpdate
from switchboard.resources.automations.validation import validate_actions

# Scopes that the actions of an automation need (docs/decisions/0033-scopes-of-actions.md).


def require_action_scopes(principal: Principal, action_types: Iterable[str], *, registry: Registry) -> None:
    """Raise `InsufficientScope` unless the principal has the scope of each action.

    The action of a plugin that is no longer installed needs the default, the strictest scope.
    """
    for action_type in action_types:
        scope = (registry.action(action_type) or AutomationAction).scope
        if scope is not None:
            principal.require_scope(scope, purpose=f"The action {action_type}")


def list_automations(session: TenantSession) -> SelectOfScalar[Automation]:
    """Select the organization's automations."""
    return session.select(Automation)


async def list_automations_using(session: TenantSession, action_type: str) -> list[Automation]:
    """List the automations that have an action of a type."""
    rows = list_automations(session).where(col(Automation.actions).contains([{"type": action_type}]))
    return list((await session.exec(rows.order_by(col(Automation.name)))).all())


async def get_automation(session: TenantSession, automation_id: UUID, *, lock: bool = False) -> Automation:
    """Return an automation. Raises `NotFound`."""
    automation = await session.find(Automation, automation_id, lock=lock)
    if automation is None:
        raise NotFound
    return automation


async def list_runs(
    session: TenantSession, automation_id: UUID, *, status: str | None = None
) -> SelectOfScalar[AutomationRun]:
    """Select an automation's runs. Raises `NotFound`."""
    automation = await get_automation(session, automation_id)
    rows = session.select(AutomationRun).where(col(AutomationRun.automation_id) == automation.id)
    return rows if status is None else rows.where(col(AutomationRun.status) == status)


async def get_run(session: TenantSession, automation_id: UUID, run_id: UUID, *, lock: bool = False) -> AutomationRun:
    """Return one run of an automation. Raises `NotFound`."""
    rows = (await list_runs(session, automation_id)).where(col(AutomationRun.id) == run_id)
    run = (await session.exec(rows.with_for_update() if lock else rows)).one_or_none()
    if run is None:
        raise NotFound
    return run


async def retry_run(
    session: TenantSession, automation_id: UUID, run_id: UUID, *, principal: Principal, registry: Registry
) -> AutomationRun:
    """Resume a failed run at the action that failed. Completed actions are not repeated.

    Raises `NotFound`, `InvalidState`, and `InsufficientScope` for an action that the principal may not write.
    """
    run = await get_run(session, automation_id, run_id, lock=True)
    if run.status != "failed":
        raise InvalidState(f"The run is {run.status}. Only a failed run can be retried.")
    if run.is_lost:
        raise InvalidState("The run's event or actions cannot be decrypted.")
    records = run.records()
    require_action_scopes(
        principal, (record.type for record in records if record.status != "completed"), registry=registry
    )
    run.keep(
        [
            record if record.status == "completed" else ActionRecord(type=record.type, params=record.params)
            for record in records
        ]
    )
    run.status, run.error_message, run.completed_at, run.due_at = "running", None, None, now()
    wake(session, "wake_run_worker")
    record_audit(session, AuditAction.AUTOMATION_RUN_RETRIED, run.id)
    return run


async def create_automation(
    session: TenantSession,
    data: AutomationCreate,
    *,
    principal: Principal,
    extensions: Extensions,
    outbound: OutboundClient,
) -> Automation:
    """Create an automation.

    Raises `ValidationFailed`, which names each action that can never run, and `InsufficientScope` for an action that
    the principal may not write.
    """
    await validate_actions(session, data.actions, extensions=extensions, outbound=outbound)
    require_action_scopes(principal, (action.type for action in data.actions), registry=extensions.registry)
    automation = Automation(id=new_id(), organization_id=session.organization_id, **data.model_dump(mode="json"))
    session.add(automation)
    await _set_trigger(session, automation)
    record_audit(session, AuditAction.AUTOMATION_CREATED, automation.id, fields=data.model_fields_set)
    return automation


async def update_automation(
    session: TenantSession,
    automation_id: UUID,
    data: AutomationUpdate,
    *,
    principal: Principal,
    extensions: Extensions,
    outbound: OutboundClient,
) -> Automation:
    """Change the given fields that differ. Runs that have started continue unchanged.

    The principal must have the scopes of all actions, also of those that stay: another trigger uses them for something
    else. Only disabling an automation needs none of them. Raises `NotFound` and what `create_automation` raises.
    """
    automation = await get_automation(session, automation_id, lock=True)
    changes = data.keep_changes(AutomationOut.from_row(automation))
    fields = changes.model_fields_set
    if "actions" in fields:
        await validate_actions(session, changes.actions, extensions=extensions, outbound=outbound)
    for field, value in changes.model_dump(mode="json", include=fields).items():
        setattr(automation, field, value)
    if data.model_fields_set != {"enabled"} or data.enabled:
        require_action_scopes(
            principal, (action["type"] for action in automation.actions), registry=extensions.registry
        )
    if not fields:
        return automation
    await _set_trigger(session, automation)
    record_audit(session, AuditAction.AUTOMATION_UPDATED, automation.id, fields=fields)
    return automation


async def delete_automation(session: TenantSession, automation_id: UUID) -> None:
    """Delete an automation for good with its runs; those that have started stop. Raises `NotFound`."""
    automation = await get_automation(session, automation_id, lock=True)
    await set_trigger(session, automation.id, None)
    await session.delete(automation)
    record_audit(session, AuditAction.AUTOMATION_DELETED, automation_id)


async def _set_trigger(session: TenantSession, automation: Automation) -> None:
    await set_trigger(session, automation.id, automation.trigger_type if automation.enabled else None)
