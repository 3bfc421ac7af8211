"""The way of a new installation from the offline providers to its own telephone: a list of steps, which the overview
shows, and its actions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to
from switchboard.apps.dashboard.queries import has_answered_call
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.apps.tenant_files.defaults import EMBEDDED
from switchboard.engine.providers.editing import list_providers
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.engine.providers.turn_prediction import find_default_detector, get_default_detector
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import InvalidState
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.agents.models import PROVIDER_FIELDS, Agent
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.queries import list_agents_by_age
from switchboard.resources.agents.schemas import AgentUpdate
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers.queries import list_numbers_at_carrier

CAPABILITIES: Final = (
    Capability.TELEPHONY,
    Capability.LLM,
    Capability.TEXT_TO_SPEECH,
    Capability.SPEECH_TO_TEXT,
)
MOST_AGENTS: Final = 5


@dataclass(frozen=True, slots=True)
class SetupStep:
    """Choice of one capability's provider: the configured provider and its class, or the providers to choose from.

    The turn detector may be the default one, which nobody has chosen. Without a class the words alone decide: there is
    no call with people yet, or no plugin of that name.
    """

    capability: Capability
    chosen: ProviderConfiguration | None
    kind: type[Configurable] | None
    offers: Sequence[type[Configurable]] = ()

    @property
    def is_done(self) -> bool:
        """Return whether the provider works with its current settings, as far as the last check shows. A turn detector
        need not have been checked.
        """
        if self.capability is Capability.TURN_DETECTOR:
            return self.kind is not None and not self.has_failed
        checked_at = self.chosen.checked_at if self.chosen else None
        is_checked = self.chosen is not None and checked_at is not None and checked_at >= self.chosen.updated_at
        return is_checked and not self.has_failed

    @property
    def has_failed(self) -> bool:
        """Return whether the last check has shown that the provider does not work with its current settings, or that
        the turn detector is too slow.
        """
        return self.chosen is not None and self.chosen.last_check_failed


@dataclass(frozen=True, slots=True)
class Setup:
    """The steps: providers, a turn detector (None if no plugin has a default one, and none is chosen), an agent that
    uses the providers (or `offline_agents`, which do not yet), a phone number, a call.
    """

    providers: Sequence[SetupStep]
    detector: SetupStep | None
    has_agent: bool
    offline_agents: Sequence[Agent]
    has_number: bool
    has_call: bool

    @property
    def agents_can_switch(self) -> bool:
        """Return whether there are a model, a voice, and transcription for an agent to use."""
        return all(step.chosen is not None for step in self.providers if step.capability is not Capability.TELEPHONY)

    @property
    def done(self) -> int:
        """Return the number of steps that are done."""
        others = (self.detector is not None and self.detector.is_done, self.has_agent, self.has_number, self.has_call)
        return sum(step.is_done for step in self.providers) + sum(others)

    @property
    def total(self) -> int:
        """Return the number of steps."""
        return len(self.providers) + (self.detector is not None) + 3


async def read_setup(session: ReadSession, registry: Registry) -> Setup | None:
    """Return the organization's steps; None if all are done, or the list was dismissed."""
    if (await session.get_one(Organization, session.organization_id)).setup_dismissed_at is not None:
        return None
    rows = await list_providers(session)
    steps = list_provider_steps(registry, rows)
    carrier, has_number, has_call = steps[0].chosen, False, False
    if carrier is not None:
        has_number = bool(await list_numbers_at_carrier(session, carrier.name))
        has_call = await has_answered_call(session, carrier.name)
    found = await list_agents_by_age(session)
    offline = [
        agent
        for agent in found
        if any(getattr(agent.settings, field) == EMBEDDED[kind] for field, kind in PROVIDER_FIELDS.items())
    ]
    setup = Setup(
        steps,
        _find_detector_step(registry, rows),
        has_agent=len(offline) < len(found),
        offline_agents=offline[:MOST_AGENTS],
        has_number=has_number,
        has_call=has_call,
    )
    return None if setup.done == setup.total else setup


def list_provider_steps(registry: Registry, rows: Sequence[ProviderConfiguration]) -> list[SetupStep]:
    """Return the steps of the organization's providers. The offline ones, which need no account, do not count."""
    steps = []
    for capability in CAPABILITIES:
        own = (row for row in rows if row.capability == capability and row.name != EMBEDDED[capability])
        chosen = next(own, None)
        offers = [kind for kind in registry.list_classes(capability) if kind.name != EMBEDDED[capability]]
        kind = registry.find_class(capability, chosen.name) if chosen else None
        steps.append(SetupStep(capability, chosen, kind, offers))
    return steps


def _find_detector_step(registry: Registry, rows: Sequence[ProviderConfiguration]) -> SetupStep | None:
    detector = Capability.TURN_DETECTOR
    if chosen := next((row for row in rows if row.capability == detector), None):
        return SetupStep(detector, chosen, registry.find_class(detector, chosen.name))
    return SetupStep(detector, None, find_default_detector(registry, rows)) if get_default_detector(registry) else None


@action("/dashboard/setup/dismiss", role="owner")
async def dismiss_setup(session: WriteSession) -> Next:
    """Hide the setup list for the organization."""
    organization = await session.get_one(Organization, session.organization_id)
    organization.setup_dismissed_at = now()
    record_audit(session, AuditAction.SETUP_DISMISSED, organization.id)
    return go_to("overview", _("The setup list is hidden. Its pages are in the navigation."))


@action("/dashboard/setup/agents/<agent_id>", role="owner")
async def use_own_providers(
    session: WriteSession, viewer: Viewer, agent_id: UUID, registry: Registry, publisher: AgentPublisher
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
