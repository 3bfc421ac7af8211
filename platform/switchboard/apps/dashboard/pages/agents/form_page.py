"""The form of an agent, which the pages of new, imported, and existing agents show."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import Field

from switchboard.apps.dashboard.forms import agent as forms
from switchboard.apps.dashboard.forms.form import Form, list_bounds
from switchboard.apps.dashboard.ui.actors import get_actor_names
from switchboard.apps.dashboard.ui.labels import CLAIMS
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.providers.instances import Extensions, list_provider_names
from switchboard.engine.providers.offers import VoiceCatalog
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import Query
from switchboard.plugin_sdk import AgentTool, PrivateDataDetector
from switchboard.resources.agents import drafts
from switchboard.resources.agents.drafts import list_results
from switchboard.resources.agents.models import PROVIDER_FIELDS, Agent
from switchboard.resources.agents.queries import find_draft, get_agent_names, list_models_in_use
from switchboard.resources.agents.redaction import list_kinds
from switchboard.resources.agents.tools import list_tool_names
from switchboard.resources.appointments.queries import list_appointment_types
from switchboard.resources.calls.service import list_metadata_names
from switchboard.resources.campaigns.dialer import CONTACT_METADATA
from switchboard.resources.disclosure.presets import load_presets
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.simulations.queries import list_simulation_names

LANGUAGES: Final = (
    "de-DE",
    "en-AU",
    "en-GB",
    "en-IN",
    "en-US",
    "es-ES",
    "es-MX",
    "fr-CA",
    "fr-FR",
    "it-IT",
    "ja-JP",
    "nl-NL",
    "pl-PL",
    "pt-BR",
    "sv-SE",
)
"""Suggestions; an agent accepts any language."""


@dataclass(frozen=True, slots=True)
class AgentFormPage:
    """Renders the form with what the organization can choose from."""

    voices: VoiceCatalog
    extensions: Extensions

    async def render_agent(self, session: ReadSession, form: Form, agent: Agent) -> str:
        """Render the form of an agent, with the values of its draft if it has one."""
        draft = await find_draft(session, agent.id)
        shown = drafts.build_drafted_agent(agent, draft) if draft is not None else agent
        form = form.starting_with(forms.agent_to_form(shown))
        names = await get_actor_names(session) if draft is not None else {}
        required = form.value("required_simulations", [])
        named = [name for name in required if isinstance(name, str) and name] if isinstance(required, list) else []
        offered = dict.fromkeys((*await list_simulation_names(session, agent.id), *named))
        return await self._render(
            session,
            form,
            shown,
            agent=agent,
            draft=draft,
            draft_by=names.get((draft and draft.made_by) or "", ""),
            is_outdated=draft is not None and await drafts.is_outdated(session, agent, draft),
            results=await list_results(session, agent, draft) if draft is not None else {},
            simulation_names=[(name, name) for name in offered],
            known_variables=await list_known_variables(session, agent.id),
        )

    async def render_new(self, session: ReadSession, form: Form, shown: Agent, **context: object) -> str:
        """Render the form of a new agent, with the values of one that is not saved."""
        form = form.starting_with(forms.agent_to_form(shown))
        known = await list_known_variables(session)
        return await self._render(session, form, shown, agent=None, draft=None, known_variables=known, **context)

    async def _render(self, session: ReadSession, form: Form, shown: Agent, **context: object) -> str:
        offered: dict[str, list[str]] = {}
        for field, capability in PROVIDER_FIELDS.items():
            names, chosen = await list_provider_names(session, capability), form.value(field)
            # An agent may name a provider that was removed.
            offered[field] = [*names, str(chosen)] if chosen and chosen not in names else names
        speaker = str(form.value("tts_provider", ""))
        has_voices = speaker in offered["tts_provider"]
        return await render(
            "dashboard/agents/edit.html",
            form=form,
            offered=offered,
            claim_names=CLAIMS.items(),
            preset_names=[(name, _(preset.jurisdiction)) for name, preset in load_presets().items()],
            tool_names=[(name, name) for name in list_tool_names(self.extensions.registry, shown)],
            reasons=await self.extensions.list_reasons(session, AgentTool),
            kinds=await self._list_offered_kinds(session, shown),
            bases=await knowledge.resolve_knowledge_bases(session, None),
            appointment_types=await list_appointment_types(session),
            colleagues=[(str(id_), name) for id_, name in (await get_agent_names(session)).items() if id_ != shown.id],
            models={
                field: await list_models_in_use(session, field) for field in ("llm_model", "tts_model", "stt_model")
            },
            voices=await self.voices.list_voices(session.organization_id, speaker) if has_voices else (),
            languages=LANGUAGES,
            zones=sorted(available_timezones()),
            bounds=list_bounds(AgentSettings),
            **context,
        )

    async def _list_offered_kinds(self, session: ReadSession, agent: Agent) -> list[tuple[str, str]]:
        """List the kinds of private data that can be redacted, and those that the agent redacts, with their titles."""
        chosen = agent.settings.redaction.kinds if agent.settings.redaction else ()
        missing = (await self.extensions.list_reasons(session, PrivateDataDetector)).keys() - set(chosen)
        return [(kind, _(title)) for kind, title in list_kinds(self.extensions.registry).items() if kind not in missing]


async def list_reference_names(session: ReadSession) -> dict[str, str]:
    """Return the names of the knowledge bases, appointment types, and agents that agents refer to, by id."""
    bases = await knowledge.resolve_knowledge_bases(session, None)
    kinds = await list_appointment_types(session)
    agents = await get_agent_names(session)
    named = {base.id: base.name for base in bases} | {kind.id: kind.name for kind in kinds} | agents
    return {str(id_): name for id_, name in named.items()}


class AgentStartQuery(Query):
    """The template and the knowledge base that a new agent begins with; unknown ones are ignored."""

    template: str | None = Field(None, max_length=64)
    knowledge_base_id: UUID | None = None


async def build_fresh_agent(session: ReadSession) -> Agent:
    """Return an agent with the defaults of a new one, which is not saved."""
    first = {
        field: next(iter(await list_provider_names(session, capability)), "")
        for field, capability in PROVIDER_FIELDS.items()
    }
    settings = AgentSettings().model_copy(update=first)
    return Agent(organization_id=session.organization_id, name="", settings=settings)


async def list_known_variables(session: ReadSession, agent_id: UUID | None = None) -> dict[str, str]:
    """Return the placeholders that have a value in some calls, each with its source."""
    seen = await list_metadata_names(session, agent_id) if agent_id is not None else ()
    return {
        **dict.fromkeys(seen, _("in recent calls of this agent")),
        **dict.fromkeys(CONTACT_METADATA, _("in campaigns")),
    }
