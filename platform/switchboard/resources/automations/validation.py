"""Validate actions when an automation is saved. Reports every error at once, named by its place,
`actions.1.params.body`.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue, ValidationError

from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.database import TenantSession
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.plugin_sdk import ActionParams, AutomationAction
from switchboard.resources.automations import templates
from switchboard.resources.automations.action_dependencies import DatabaseAction, OutboundAction
from switchboard.resources.automations.schemas import Action

MAX_EXPRESSIONS = 200

Faults: TypeAlias = list[tuple[str, str]]


async def validate_actions(
    session: TenantSession, actions: Sequence[Action], *, extensions: Extensions, outbound: OutboundClient
) -> None:
    """Validate actions. Raises `ValidationFailed`. Rendered template values are validated when the action runs."""
    if templates.count_expressions([action.params for action in actions]) > MAX_EXPRESSIONS:
        raise ValidationFailed.field("actions", f"must contain at most {MAX_EXPRESSIONS} template expressions")
    found: list[FieldError] = []
    for index, action in enumerate(actions):
        faults = await _faults(session, action, extensions=extensions, outbound=outbound)
        found += [{"field": f"actions.{index}.{field}", "message": message} for field, message in faults]
    if found:
        raise ValidationFailed(f"{found[0]['field']}: {found[0]['message']}", errors=found)


async def _faults(
    session: TenantSession, action: Action, *, extensions: Extensions, outbound: OutboundClient
) -> Faults:
    kind = extensions.registry.action(action.type)
    if kind is None:
        return [
            (
                "type",
                (
                    f"{action.type} is not an action; there are "
                    f"{', '.join(sorted(each.name for each in extensions.registry.actions))}"
                ),
            )
        ]
    (configured,) = await extensions.configure(session, [kind])
    if configured.settings is None:
        return [("type", configured.reason)]
    found = templates.find_template_errors(action.params, "params") + _static_faults(kind, action.params)
    static = {name: value for name, value in action.params.items() if not templates.has_template(value)}
    try:
        if not found and issubclass(kind, DatabaseAction):
            await kind(session).check_params(static)
        elif not found and issubclass(kind, OutboundAction):
            await kind(outbound).check_params(static)
    except ValidationFailed as error:
        found += [(f"params.{fault['field']}", fault["message"]) for fault in error.errors]
    return found


def _static_faults(kind: type[AutomationAction[ActionParams]], params: Mapping[str, JsonValue]) -> Faults:
    """Return the validation errors of the action's model, except those about templates."""
    try:
        kind.Params.model_validate(dict(params))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        static = [fault for fault in faults if not _leads_to_template(params, fault["loc"])]
        return [(_field(fault["loc"]), fault["msg"].removeprefix("Value error, ")) for fault in static]
    return []


def _field(place: tuple[str | int, ...]) -> str:
    # Pydantic reports "[key]" if the key itself is invalid, and not the value under it.
    return ".".join(str(part) for part in ("params", *place) if part != "[key]")


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
