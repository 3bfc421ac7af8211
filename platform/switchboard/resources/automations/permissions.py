"""Scopes that the actions of an automation need (docs/decisions/0033-scopes-of-actions.md)."""

from collections.abc import Iterable

from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk import AutomationAction
from switchboard.plugin_sdk.registry import Registry


def require_action_scopes(principal: Principal, action_types: Iterable[str], *, registry: Registry) -> None:
    """Raise `InsufficientScope` unless the principal has the scope of each action.

    The action of a plugin that is no longer installed needs the default, the strictest scope.
    """
    for action_type in action_types:
        scope = (registry.action(action_type) or AutomationAction).scope
        if scope is not None:
            principal.require_scope(scope, purpose=f"The action {action_type}")
