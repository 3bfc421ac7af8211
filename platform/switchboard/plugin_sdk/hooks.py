"""All hooks. Each hook collects: the results of every plugin count, not only the first.

A plugin is a module (or object) with functions of these names, marked `@hookimpl`, named by an entry point of the group
`switchboard.plugins`. The plugins of the platform's repository load first, then all others, in the order of their
names. Hooks are plain functions, neither asynchronous nor wrappers: they return classes, and the asynchronous work is
in the classes.

The platform starts whatever is wrong with a plugin. The log and `switchboard plugins list` name what was left out and
why:

- a module that cannot be imported, a `PLUGIN_API_VERSION` that is not supported, an unknown hook (of a newer version,
  for example), or a hook with wrong arguments: the whole plugin;
- a hook that raises, or returns something that is not iterable: the results of that hook;
- a class that is not a subclass of the capability's base class, lacks a method, a name, or a title, or has a method
  that cannot be called as its base class declares it: that class.

Of two actions, tools, detectors, processes, or commands with one name, the first is kept. Of two providers with one
name and capability, the first has the plain name; `plugin/name` (`acme/openai`) names the provider of one plugin.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import click
import pluggy

from switchboard.plugin_sdk.actions import AutomationAction
from switchboard.plugin_sdk.calendars import CalendarProvider
from switchboard.plugin_sdk.embeddings import EmbeddingProvider
from switchboard.plugin_sdk.event_watchers import EventWatcher, PublishedEvent
from switchboard.plugin_sdk.llm import LLMProvider
from switchboard.plugin_sdk.private_data import PrivateDataDetector
from switchboard.plugin_sdk.processes import ProviderProcess
from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.speech_to_text import SpeechToTextProvider
from switchboard.plugin_sdk.telephony import TelephonyProvider
from switchboard.plugin_sdk.text_to_speech import TextToSpeechProvider
from switchboard.plugin_sdk.tools import AgentTool
from switchboard.plugin_sdk.turn_detectors import TurnDetector
from switchboard.plugin_sdk.vector_stores import VectorStore

PROJECT = "switchboard"
ENTRY_POINT_GROUP = "switchboard.plugins"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks(Protocol):
    """The hooks, by name."""

    @hookspec
    def telephony_providers(self) -> Sequence[type[TelephonyProvider[ProviderSettings]]]:
        """Carriers: calls, text messages, phone numbers, recordings.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `telephony`. An exception leaves out this hook's classes.
        """

    @hookspec
    def speech_to_text_providers(self) -> Sequence[type[SpeechToTextProvider[ProviderSettings]]]:
        """Speech-to-text providers.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `speech_to_text`. An exception leaves out this hook's classes.
        """

    @hookspec
    def text_to_speech_providers(self) -> Sequence[type[TextToSpeechProvider[ProviderSettings]]]:
        """Text-to-speech providers.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `text_to_speech`. An exception leaves out this hook's classes.
        """

    @hookspec
    def llm_providers(self) -> Sequence[type[LLMProvider[ProviderSettings]]]:
        """Language models.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `llm`; an agent's `llm_provider` is its name. An exception leaves
        out this hook's classes.
        """

    @hookspec
    def embedding_providers(self) -> Sequence[type[EmbeddingProvider[ProviderSettings]]]:
        """Embedding models.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `embedding`. An exception leaves out this hook's classes.
        """

    @hookspec
    def vector_stores(self) -> Sequence[type[VectorStore[ProviderSettings]]]:
        """Vector stores.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `vector_store`. An exception leaves out this hook's classes.
        """

    @hookspec
    def turn_detectors(self) -> Sequence[type[TurnDetector[ProviderSettings]]]:
        """Detectors of the ends of callers' turns.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves an
        organization whose tenant file names it under `turn_detector`, or that has chosen none if the class is the
        default. An exception leaves out this hook's classes.
        """

    @hookspec
    def calendar_providers(self) -> Sequence[type[CalendarProvider[ProviderSettings]]]:
        """Calendars that appointments are booked in.

        Called once in every process (server, worker, command) at startup. Returns classes; one instance serves a
        calendar that an organization has connected. An exception leaves out this hook's classes.
        """

    @hookspec
    def automation_actions(self) -> Sequence[type[AutomationAction[Any]]]:
        """Kinds of automation actions.

        Called once in every process (server, worker, command) at startup. Returns classes; an automation's action names
        one by its `type`. Its `run` is called in a worker. An exception leaves out this hook's classes.
        """

    @hookspec
    def event_published(self, event: PublishedEvent) -> None:
        """Watch events of the catalog, of every organization.

        Called in a worker, in its own thread, after the event's transaction was committed; at least once per event, and
        again after a crash. What the function returns is ignored. What it raises is logged. The time limit is 10
        seconds: a call that takes longer keeps running, and a plugin with eight such calls receives no more events
        until one of them ends.
        """

    @hookspec
    def event_watchers(self) -> Sequence[type[EventWatcher]]:
        """Watchers of events, with settings per organization.

        Called once in every process (server, worker, command) at startup. Returns classes; an instance is created,
        without arguments, for each event of an organization that has set the required settings. Its `watch` is called
        in a worker, at least once per event. An exception leaves out this hook's classes.
        """

    @hookspec
    def agent_tools(self) -> Sequence[type[AgentTool[Any]]]:
        """Tools that every agent's model may call.

        Called once in every process (server, worker, command) at startup. Returns classes; an instance is created,
        without arguments, for each call and for each reply to a text message. Its `run` is called in the process that
        handles the call, or in the worker that replies. An exception leaves out this hook's classes.
        """

    @hookspec
    def private_data_detectors(self) -> Sequence[type[PrivateDataDetector]]:
        """Kinds of private data that agents may redact.

        Called once in every process (server, worker, command) at startup. Returns classes; an agent's `redaction`
        names one by its `name`. An instance is created, without arguments, for each call and each text message. An
        exception leaves out this hook's classes.
        """

    @hookspec
    def provider_processes(self) -> Sequence[type[ProviderProcess[Any]]]:
        """Processes that serve a provider's accounts beside servers and workers, such as a gateway.

        Called once in every process at startup. Returns classes; `switchboard <name>` creates an instance with the
        command's options and runs it, in a process of its own. Any number of them may run. A command of the platform
        is never replaced. An exception leaves out this hook's classes.
        """

    @hookspec
    def cli_commands(self) -> Sequence[click.Command]:
        """Additional commands of `switchboard`.

        Called once in every process at startup; the commands run only in `switchboard` itself. Returns click commands
        with names; a command of the platform is never replaced. `click.pass_obj` passes a command an
        `InstallationAccess`, its way to calls and accounts. An exception leaves out this hook's commands.
        """
