"""Redactors of conversations, from the settings of the agent or of its organization."""

from collections.abc import Iterable

import structlog

from switchboard.engine.conversation.agent_settings import Redaction
from switchboard.engine.providers.instances import ConfiguredExtension, ExtensionNotAvailable, configure_extensions
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import KEYPAD, Redactor
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.observability.logs import locate_error
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import PrivateDataDetector
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.identity.policy import RedactionDefault
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()


def list_kinds(registry: Registry) -> dict[str, str]:
    """Return the kinds of private data that can be redacted, with their titles."""
    detectors = (*BUILT_IN, *registry.list_extension_classes(PrivateDataDetector))
    return {**{detector.name: detector.title for detector in detectors}, KEYPAD: LazyText("Keys that callers press")}


async def check_redaction(session: ReadSession, redaction: Redaction) -> None:
    """Check an agent's kinds.

    Raises `ValidationFailed` for a kind that nothing detects, or whose detector lacks the organization's settings.
    """
    known = list_kinds(session.parts.registry)
    configured = await _configure_detectors(session, redaction.kinds)
    reasons = {each.extension.name: each.reason for each in configured if each.settings is None}
    for field in ("kinds", "visible_to_model"):
        for place, kind in enumerate(getattr(redaction, field)):
            if kind not in known:
                raise ValidationFailed.field(f"redaction.{field}.{place}", f"must be one of {', '.join(known)}")
            if kind in reasons:
                raise ValidationFailed.field(f"redaction.{field}.{place}", reasons[kind])


async def open_redactor(session: ReadSession, agent: Agent | None) -> Redactor:
    """Build the redactor of one conversation with an agent, or with none.

    The registry and the key ring come with the session, so that whatever keeps a text can redact it.
    """
    if agent is not None and agent.settings.redaction is not None:
        settings: Redaction | RedactionDefault = agent.settings.redaction
    else:
        settings = (await get_policy(session, session.organization_id)).redaction
    kinds, visible = frozenset(settings.kinds), frozenset(settings.visible_to_model)
    if unknown := kinds - list_kinds(session.parts.registry).keys():
        logger.error("private data is not redacted: no plugin detects it", kinds=sorted(unknown))
    detectors, undetectable = list[PrivateDataDetector](), list[str]()
    for configured in await _configure_detectors(session, kinds):
        if (detector := _create_detector(configured)) is not None:
            detectors.append(detector)
        else:
            undetectable.append(configured.extension.name)
    language = agent.settings.stt_language if agent is not None else "mul"
    return Redactor(detectors, kinds, visible, language, undetectable)


async def _configure_detectors(
    session: ReadSession, kinds: Iterable[str]
) -> list[ConfiguredExtension[PrivateDataDetector]]:
    added = session.parts.registry.list_extension_classes(PrivateDataDetector)
    chosen = [detector for detector in (*BUILT_IN, *added) if detector.name in kinds]
    return await configure_extensions(session, chosen)


def _create_detector(configured: ConfiguredExtension[PrivateDataDetector]) -> PrivateDataDetector | None:
    """Create a detector; None, with a line in the log, if it cannot be created."""
    event, kind = "private data cannot be detected, every text is redacted", configured.extension.name
    try:
        return configured.create()
    except ExtensionNotAvailable as error:
        logger.error(event, kind=kind, reason=error.message)
    except Exception as error:  # noqa: BLE001 - a plugin's constructor may raise anything
        logger.error(event, kind=kind, error=type(error).__name__, at=locate_error(error))
    return None
