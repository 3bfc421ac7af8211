"""Business rules of automations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import JsonValue, ValidationError

from switchboard.engine.providers.instances import Extensions, configure_extensions
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.outbox import set_trigger
from switchboard.foundation.web.errors import FieldError, InvalidState, NotFound, ValidationFailed
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk import ActionParams, AutomationAction
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations import templates
from switchboard.resources.automations.actions import ActionServices, DatabaseAction, OutboundAction
from switchboard.resources.automations.models import ActionRecord, Automation, AutomationRun
from switchboard.resources.automations.schemas import Action, AutomationCreate, AutomationOut, AutomationUpdate

MAX_EXPRESSIONS = 200

# Scopes that the actions of an automation need (docs/decisions/0033-scopes-of-actions.md).


def require_action_scopes(principal: Principal, action_types: Iterable[str], *, registry: Registry) -> None:
    """Raise `InsufficientScope` unless the principal has the scope of each action.

    The action of a plugin that is no longer installed needs the default, the strictest scope.
    """
    for action_type in action_types:
        scope = (registry.action(action_type) or AutomationAction).scope
        if scope is not None:
            principal.require_scope(scope, purpose=f"The action {action_type}")


async def get_run(session: ReadSession, automation_id: UUID, run_id: UUID) -> AutomationRun:
    """Return one run of an automation. Raises `NotFound`."""
    run = await get_row(session, AutomationRun, run_id)
    if run.automation_id != automation_id:
        raise NotFound
    return run


async def retry_run(
    session: WriteSession, automation_id: UUID, run_id: UUID, *, principal: Principal, registry: Registry
) -> AutomationRun:
    """Resume a failed run at the action that failed. Completed actions are not repeated.

    Raises `NotFound`, `InvalidState`, and `InsufficientScope` for an action that the principal may not write.
    """
    run = await lock_row(session, AutomationRun, run_id)
    if run.automation_id != automation_id:
        raise NotFound
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
    run.status, run.error_message, run.completed_at, run.due_at = "running", Content(None), None, now()
    await seal_content(session, run)
    session.wake("take_run")
    record_audit(session, AuditAction.AUTOMATION_RUN_RETRIED, run.id)
    return run


async def delete_automation(session: WriteSession, automation_id: UUID) -> None:
    """Delete an automation for good with its runs; those that have started stop. Raises `NotFound`."""
    automation = await lock_row(session, Automation, automation_id)
    await set_trigger(session, automation.id, None)
    await session.delete(automation)
    record_audit(session, AuditAction.AUTOMATION_DELETED, automation_id)


async def _set_trigger(session: WriteSession, automation: Automation) -> None:
    await set_trigger(session, automation.id, automation.trigger_type if automation.enabled else None)


@dataclass(frozen=True, slots=True)
class AutomationEditor:
    extensions: Extensions
    services: ActionServices

    async def create(self, session: WriteSession, data: AutomationCreate, principal: Principal) -> Automation:
        """Create an automation.

        Raises `ValidationFailed`, which names each action that can never run, and `InsufficientScope` for an action
        that the principal may not write.
        """
        await self._validate_actions(session, data.actions)
        require_action_scopes(principal, (action.type for action in data.actions), registry=self.extensions.registry)
        automation = Automation(organization_id=session.organization_id, **data.model_dump(mode="json"))
        session.add(automation)
        await _set_trigger(session, automation)
        record_audit(session, AuditAction.AUTOMATION_CREATED, automation.id, fields=data.model_fields_set)
        return automation

    async def update(
        self, session: WriteSession, automation_id: UUID, data: AutomationUpdate, principal: Principal
    ) -> Automation:
        """Change the given fields that differ. Runs that have started continue unchanged.

        The principal must have the scopes of all actions, also of those that stay: another trigger uses them for
        something else. Only disabling an automation needs none of them. Raises `NotFound` and what `create` raises.
        """
        automation = await lock_row(session, Automation, automation_id)
        changes = data.keep_changes(AutomationOut.model_validate(automation))
        fields = changes.model_fields_set
        if "actions" in fields:
            await self._validate_actions(session, changes.actions)
        automation.sqlmodel_update(changes.model_dump(mode="json", include=fields))
        if data.model_fields_set != {"enabled"} or data.enabled:
            require_action_scopes(
                principal, (action["type"] for action in automation.actions), registry=self.extensions.registry
            )
        if not fields:
            return automation
        await _set_trigger(session, automation)
        record_audit(session, AuditAction.AUTOMATION_UPDATED, automation.id, fields=fields)
        return automation

    async def _validate_actions(self, session: WriteSession, actions: Sequence[Action]) -> None:
        """Raise `ValidationFailed` with every error at once, named by its place, `actions.1.params.body`.

        Rendered values of templates are validated when the action runs.
        """
        if templates.count_expressions([action.params for action in actions]) > MAX_EXPRESSIONS:
            raise ValidationFailed.field("actions", f"must contain at most {MAX_EXPRESSIONS} template expressions")
        found: list[FieldError] = [
            {"field": f"actions.{index}.{field}", "message": message}
            for index, action in enumerate(actions)
            for field, message in await self._find_faults(session, action)
        ]
        if found:
            raise ValidationFailed(f"{found[0]['field']}: {found[0]['message']}", errors=found)

    async def _find_faults(self, session: WriteSession, action: Action) -> list[tuple[str, str]]:
        """Return the place and message of each fault of an action."""
        kind = self.extensions.registry.action(action.type)
        if kind is None:
            known = ", ".join(sorted(each.name for each in self.extensions.registry.actions))
            return [("type", f"{action.type} is not an action; there are {known}")]
        (configured,) = await configure_extensions(session, [kind])
        if configured.settings is None:
            return [("type", configured.reason)]
        found = [*templates.find_template_errors(action.params, "params"), *_find_static_faults(kind, action.params)]
        static = {name: value for name, value in action.params.items() if not templates.has_template(value)}
        try:
            if not found and issubclass(kind, DatabaseAction):
                await kind(session).check_params(session, static)
            elif not found and issubclass(kind, OutboundAction):
                await kind(self.services).check_params(session, static)
        except ValidationFailed as error:
            found += [(f"params.{fault['field']}", fault["message"]) for fault in error.errors]
        return found


def _find_static_faults(
    kind: type[AutomationAction[ActionParams]], params: Mapping[str, JsonValue]
) -> list[tuple[str, str]]:
    """Return the validation errors of the action's model, except those about templates."""
    try:
        kind.Params.model_validate(dict(params))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return [
            # Pydantic reports "[key]" if the key itself is invalid, and not the value under it.
            (
                ".".join(str(part) for part in ("params", *fault["loc"]) if part != "[key]"),
                fault["msg"].removeprefix("Value error, "),
            )
            for fault in faults
            if not _leads_to_template(params, fault["loc"])
        ]
    return []


def _leads_to_template(params: Mapping[str, JsonValue], place: tuple[str | int, ...]) -> bool:
    """Return whether an error is about a value that is or contains a template, other than the parameters as a whole."""
    name, *rest = place or ("",)
    value = params.get(str(name))
    for part in rest:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
    return templates.has_template(value)
