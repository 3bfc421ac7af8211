"""Notice and consent of one call, from the settings of the agent and of its organization."""

from dataclasses import fields

import structlog

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.disclosure.disclosure import Disclosure, DisclosureTexts, get_phrases, has_phrases
from switchboard.engine.disclosure.places import find_place
from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.agents.models import Agent
from switchboard.resources.disclosure.presets import list_unknown_presets, load_presets
from switchboard.resources.disclosure.rules import AppliedRule, combine_rules, find_rule
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()
TEXTS = tuple(field.name for field in fields(DisclosureTexts))


def check_disclosure(agent: AgentSettings) -> None:
    """Raise `ValidationFailed` for an unknown preset, and for a sentence that is missing in the agent's language."""
    if agent.disclosure is None:
        return
    for place, name in enumerate(agent.disclosure.presets):
        if list_unknown_presets([name]):
            message = f"{name} is not a preset; there are {', '.join(load_presets())}"
            raise ValidationFailed.field(f"disclosure.presets.{place}", message)
    if has_phrases(agent.stt_language) or agent.stt_language == "mul":
        return
    for name, text in agent.disclosure.texts:
        if text is None:
            message = f"is required: there is no standard sentence in {agent.stt_language}"
            raise ValidationFailed.field(f"disclosure.texts.{name}", message)


async def open_disclosure(
    session: ReadSession, agent: Agent, other_number: str, *, voicemail: bool
) -> Disclosure | None:
    """Return the notice and the question that open a call with a number; None if neither is due.

    The stricter of the agent's and the organization's rule applies. An answering machine does not ask: a caller who
    speaks after the notice and the tone leaves a message to be recorded.
    """
    policy = await get_policy(session, session.organization_id)
    layers = {"organization": policy.disclosure}
    if agent.settings.disclosure is not None:
        layers["agent"] = agent.settings.disclosure
    if all(settings == DisclosureSettings() for settings in layers.values()):
        return None
    for name, settings in layers.items():
        if unknown := list_unknown_presets(settings.presets):
            logger.error("disclosure has unknown presets", layer=name, presets=unknown)
    place = find_place(other_number)
    rule = combine_rules(_name_layer(find_rule(settings, place), name) for name, settings in layers.items())
    if not rule.ai_notice and rule.consent == "none":
        return None
    phrases = get_phrases(agent.settings.stt_language)
    chosen = [layer.texts for layer in reversed(layers.values())]
    return Disclosure(
        announces_ai=rule.ai_notice,
        consent="notice" if voicemail and rule.consent == "ask" else rule.consent,
        ends_without_consent=any(layer.without_consent == "end_call" for layer in layers.values()),
        texts=DisclosureTexts(
            *(
                next(filter(None, (getattr(texts, name) for texts in chosen)), getattr(phrases.texts, name))
                for name in TEXTS
            )
        ),
        phrases=phrases,
        rules=rule.names,
        place=place,
    )


def _name_layer(rule: AppliedRule, layer: str) -> AppliedRule:
    """Return the name of the layer that sets a rule; empty for a layer that demands nothing."""
    demands = rule.ai_notice or rule.consent != "none"
    return AppliedRule(rule.ai_notice, rule.consent, tuple(f"{layer}: {name}" for name in rule.names if demands))
