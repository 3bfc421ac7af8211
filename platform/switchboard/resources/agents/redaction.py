"""Redactors of conversations, from the settings of the agent or of its organization."""

import structlog

from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import KEYPAD, Redactor
from switchboard.foundation.database import TenantSession
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.schemas import Redaction
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()


def list_kinds(registry: Registry) -> dict[str, str]:
    """Return the kinds of private data that can be redacted, with their titles."""
    detectors = (*BUILT_IN, *registry.detectors)
    return {**{detector.name: detector.title for detector in detectors}, KEYPAD: "Keys that callers press"}


async def open_redactor(session: TenantSession, agent: Agent | None) -> Redactor:
    """Build the redactor of one conversation with an agent, or with none.

    The registry comes with the session, so that whatever keeps a text can redact it.
    """
    registry: Registry = session.info["registry"]
    if agent is not None and agent.redaction is not None:
        settings = Redaction.model_validate(agent.redaction)
        kinds, visible = frozenset(settings.kinds), frozenset(settings.visible_to_model)
    else:
        default = (await get_policy(session, session.organization_id)).redaction
        kinds, visible = frozenset(default.kinds), frozenset(default.visible_to_model)
    if unknown := kinds - list_kinds(registry).keys():
        logger.error("private data is not redacted: no plugin detects it", kinds=sorted(unknown))
    detectors = [detector() for detector in (*BUILT_IN, *registry.detectors) if detector.name in kinds]
    return Redactor(detectors, kinds, visible, agent.stt_language if agent is not None else "mul")
