"""Every hook. All of them collect: each plugin's answer counts, none is the first and only one.

A plugin is a module (or object) with functions of these names, marked `@hookimpl`, that an entry point of the group `switchboard.plugins`
names. Plugins are loaded in the order of their names. Hooks are plain functions, neither asynchronous nor wrappers: they return classes,
and the asynchronous work is in the classes.

Whatever is wrong with a plugin, the platform starts; the log and `switchboard plugins list` say what was left out and why:

- a module that cannot be imported, a hook that does not exist (that of a newer version, say), or one whose arguments do not fit: the plugin;
- a hook that raises, or returns nothing that can be iterated: what that hook would have provided;
- a class that is no subclass of the capability's, lacks a method, a name or a title, or whose name is taken: that class.
  Of two classes of one name and capability the first stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import click
import pluggy

from switchboard.plugin_sdk.actions import AutomationAction
from switchboard.plugin_sdk.embeddings import EmbeddingProvider
from switchboard.plugin_sdk.llm import JsonObject, LLMProvider
from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.speech_to_text import SpeechToTextProvider
from switchboard.plugin_sdk.telephony import TelephonyProvider
from switchboard.plugin_sdk.text_to_speech import TextToSpeechProvider
from switchboard.plugin_sdk.tools import AgentTool
from switchboard.plugin_sdk.vector_stores import VectorStore

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
        """Carriers: calls, texts, numbers, recordings.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `telephony`.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def speech_to_text_providers(self) -> Sequence[type[SpeechToTextProvider[ProviderSettings]]]:
        """Transcribers.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `speech_to_text`.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def text_to_speech_providers(self) -> Sequence[type[TextToSpeechProvider[ProviderSettings]]]:
        """Voices.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `text_to_speech`.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def llm_providers(self) -> Sequence[type[LLMProvider[ProviderSettings]]]:
        """Language models.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `llm`; an agent's `llm_provider` is its name.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def embedding_providers(self) -> Sequence[type[EmbeddingProvider[ProviderSettings]]]:
        """Embedding models.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `embedding`.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def vector_stores(self) -> Sequence[type[VectorStore[ProviderSettings]]]:
        """Vector stores.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one instance serves an organization whose tenant file names it under `vector_store`.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def automation_actions(self) -> Sequence[type[AutomationAction[Any]]]:
        """Kinds of actions that automations can take.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; an automation's action names one by its `type`. Its `run` is called in a worker.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def event_published(self, event: PublishedEvent) -> None:
        """Watch an event of the catalogue, of any organization.

        Called in a worker, in a thread of its own, after the event's transaction was committed; at least once an event, again after a
        crash. What it returns is ignored. What it raises is logged and forgotten. It has 10 seconds: one that takes longer is left to
        end by itself, and a plugin with eight of those is told of no more events until one ends.
        """

    @hookspec
    def agent_tools(self) -> Sequence[type[AgentTool[Any]]]:
        """Functions that every agent's model may call.

        Called once in every process (server, worker, command) when it starts.
        Returns classes; one is made without arguments for each call, and for each answer to a text. Its `run` is called in the process that
        holds the call, or in the worker that answers.
        An exception leaves out this hook's classes.
        """

    @hookspec
    def cli_commands(self) -> Sequence[click.Command]:
        """Commands to add to `switchboard`.

        Called once in every process when it starts; the commands are run by `switchboard` alone. Returns click commands with names;
        one of the platform's own names is never replaced. An exception leaves out this hook's commands.
        """
