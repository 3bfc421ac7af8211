"""Every hook. All of them collect: each plugin's answer counts, none is the first and only one.

A plugin is a module (or object) with functions of these names, marked `@hookimpl`, that an entry point of the group `switchboard.plugins`
names. Hooks are plain functions, called once, in every process, when it starts: they return classes, and the asynchronous work is in the
classes. One that raises disables its plugin with one line in the log and in `switchboard plugins list`; the platform starts without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import click
import pluggy

from switchboard.plugins.actions import AutomationAction
from switchboard.plugins.embeddings import EmbeddingProvider
from switchboard.plugins.llm import JsonObject, LLMProvider
from switchboard.plugins.provider import ProviderSettings
from switchboard.plugins.speech_to_text import SpeechToTextProvider
from switchboard.plugins.telephony import TelephonyProvider
from switchboard.plugins.text_to_speech import TextToSpeechProvider
from switchboard.plugins.tools import AgentTool
from switchboard.plugins.vector_stores import VectorStore

PROJECT = "switchboard"
ENTRY_POINT_GROUP = "switchboard.plugins"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event of the catalogue (`call.completed`, say) after its transaction was committed. `data` is what webhooks carry."""

    id: UUID
    organization_id: UUID
    name: str
    data: JsonObject
    occurred_at: datetime


class Hooks(Protocol):
    """The hooks, by name."""

    @hookspec
    def telephony_providers(self) -> Sequence[type[TelephonyProvider[ProviderSettings]]]:
        """Carriers."""

    @hookspec
    def speech_to_text_providers(self) -> Sequence[type[SpeechToTextProvider[ProviderSettings]]]:
        """Transcribers."""

    @hookspec
    def text_to_speech_providers(self) -> Sequence[type[TextToSpeechProvider[ProviderSettings]]]:
        """Voices."""

    @hookspec
    def llm_providers(self) -> Sequence[type[LLMProvider[ProviderSettings]]]:
        """Language models."""

    @hookspec
    def embedding_providers(self) -> Sequence[type[EmbeddingProvider[ProviderSettings]]]:
        """Embedding models."""

    @hookspec
    def vector_stores(self) -> Sequence[type[VectorStore[ProviderSettings]]]:
        """Vector stores."""

    @hookspec
    def automation_actions(self) -> Sequence[type[AutomationAction[Any]]]:
        """Kinds of actions that automations can take."""

    @hookspec
    def event_published(self, event: PublishedEvent) -> None:
        """Watch an event. Called in a worker, in a thread, after commit, at least once an event; what it raises is logged and forgotten."""

    @hookspec
    def agent_tools(self) -> Sequence[type[AgentTool[Any]]]:
        """Functions that every agent's model may call."""

    @hookspec
    def cli_commands(self) -> Sequence[click.Command]:
        """Commands to add to `switchboard`."""
