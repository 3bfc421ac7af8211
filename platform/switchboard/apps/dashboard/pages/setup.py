"""Actions of the setup list, which the overview shows until a new installation has its own telephone."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import Next, action, go_to
from switchboard.apps.dashboard.setup import list_provider_steps
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.providers.editing import list_providers
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import InvalidState
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentUpdate
from switchboard.resources.agents.service import PROVIDER_FIELDS
from switchboard.resources.identity.models import Organization


@dashboard.post("/dashboard/setup/dismiss")
@action(role="owner")
async def dismiss_setup(session: TenantSession) -> Next:
    """Hide the setup list for the organization."""
    organization = await session.get_one(Organization, session.organization_id)
    organization.setup_dismissed_at = now()
    record_audit(session, AuditAction.SETUP_DISMISSED, organization.id)
    return go_to("overview", _("The setup list is hidden. Its pages are in the navigation."))


@dashboard.post("/dashboard/setup/agents/<agent_id>")
@action(role="owner")
async def use_own_providers(
    session: TenantSession, viewer: Viewer, agent_id: UUID, registry: Registry, publisher: AgentPublisher
) -> Next:
    """Let an agent use the organization's own providers, with their default models and voice."""
    steps = list_provider_steps(registry, await list_providers(session))
    chosen = {step.capability: step.chosen for step in steps}
    names = {field: row.name for field, capability in PROVIDER_FIELDS.items() if (row := chosen[capability])}
    if len(names) < len(PROVIDER_FIELDS):
        raise InvalidState("Choose a model, a voice, and transcription first.")
    defaults = dict.fromkeys(("llm_model", "tts_voice_id", "tts_model", "stt_model"))
    update = AgentUpdate.model_validate({**names, **defaults})
    agent = await publisher.update_agent(session, agent_id, update, viewer.principal)
    return go_to("overview", _("%(name)s uses your providers.", name=agent.name))
