"""Scopes for the addresses that an agent sends data to (docs/decisions/0033-scopes-of-actions.md)."""

from switchboard.foundation.web.principal import Principal
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.schemas import AgentFields

SCOPE = "webhooks:write"


def may_set_receivers(principal: Principal) -> bool:
    """Return whether a user may change an agent's tools and webhook."""
    return SCOPE in principal.scopes


def require_receiver_scopes(principal: Principal | None, agent: Agent, data: AgentFields) -> None:
    """Raise `InsufficientScope` for a change of an agent's receivers that the principal may not make.

    A new or changed tool needs `webhooks:write`. The agent's webhook needs it of a user only: the specification lets
    an API key with `agents:write` set it. What stays or is removed needs nothing, so that a member can edit the rest of
    the agent. The operator (None) needs no scope.
    """
    if principal is None:
        return
    fields = data.model_fields_set
    if "tools" in fields and any(tool not in agent.settings.tools for tool in data.tools):
        principal.require_scope(SCOPE, purpose="An agent's tool")
    if not principal.is_user:
        return
    if "webhook_url" in fields and data.webhook_url not in (None, agent.settings.webhook_url):
        principal.require_scope(SCOPE, purpose="webhook_url")
    if "webhook_secret" in fields and data.webhook_secret is not None:
        principal.require_scope(SCOPE, purpose="webhook_secret")
