"""A plugin whose carrier and extensions go wrong as `Fault.current` says, with private data in what they raise."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from switchboard.plugin_sdk import (
    ActionContext,
    ActionParams,
    AgentTool,
    AutomationAction,
    EventWatcher,
    Frame,
    JsonObject,
    MediaCodec,
    MediaEvent,
    OutboundCall,
    OutboundTextMessage,
    PrivateDataDetector,
    PublishedEvent,
    SpokenText,
    ToolContext,
    ToolParameters,
    hookimpl,
)
from switchboard_offline.loopback import LoopbackTelephony

PRIVATE = "+15550100001"
NONSENSE: Any = object()
BLOCK_SECONDS = 0.3


class Fault:
    """The fault that all of the plugin has: a column of the page's table."""

    current: ClassVar[str] = ""


class Faulty:
    """Common part of the plugin's classes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if Fault.current == "cannot be created":
            raise KeyError(PRIVATE)


async def go_wrong() -> Any:
    """Raise, wait forever, or return nonsense."""
    if Fault.current == "waits forever":
        await asyncio.Event().wait()
    return fail()


def fail() -> Any:
    """Raise, or return nonsense."""
    if Fault.current == "raises":
        raise KeyError(PRIVATE)
    return NONSENSE


class FaultyCodec(Faulty, MediaCodec):
    """A codec."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        return fail()  # type: ignore[no-any-return]

    def encode(self, audio: bytes) -> Frame:
        return fail()  # type: ignore[no-any-return]

    def clear(self) -> Frame:
        return fail()  # type: ignore[no-any-return]

    def mark(self, name: str) -> Frame:
        return fail()  # type: ignore[no-any-return]


class FaultyCarrier(Faulty, LoopbackTelephony):
    """A carrier."""

    name, title = "faulty", "Faulty"

    async def find_call(self, reference: str) -> str | None:
        return await go_wrong()  # type: ignore[no-any-return]

    async def place_call(self, order: OutboundCall) -> str:
        return await go_wrong()  # type: ignore[no-any-return]

    async def send_text_message(self, order: OutboundTextMessage) -> str:
        return await go_wrong()  # type: ignore[no-any-return]


class CarrierOfFaultyCodecs(LoopbackTelephony):
    """A carrier whose codecs go wrong."""

    name, title = "faulty_codecs", "Faulty"

    def create_media_codec(self, media_url: str) -> MediaCodec:
        return FaultyCodec()


class FaultyAction(Faulty, AutomationAction[ActionParams]):
    """An action."""

    name, title, scope = "faulty_action", "Faulty action", None

    async def run(self, context: ActionContext, params: ActionParams) -> JsonObject:
        return await go_wrong()  # type: ignore[no-any-return]


class FaultyTool(Faulty, AgentTool[ToolParameters]):
    """A tool."""

    name, description, time_limit_seconds = "faulty_tool", "Goes wrong.", 0.05

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return await go_wrong()  # type: ignore[no-any-return]


class ToolOfFaultySchema(AgentTool[ToolParameters]):
    """A tool whose schema goes wrong."""

    name, description = "faulty_schema", "Has no schema."

    def schema(self) -> JsonObject:
        return fail()  # type: ignore[no-any-return]

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {}


class FaultyWatcher(Faulty, EventWatcher):
    """A watcher."""

    name, title = "faulty_watcher", "Faulty watcher"

    async def watch(self, event: PublishedEvent) -> None:
        await go_wrong()


class FaultyDetector(Faulty, PrivateDataDetector):
    """A detector."""

    name, title = "faulty_kind", "Faulty kind"

    def find(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
        return fail()  # type: ignore[no-any-return]


@hookimpl
def automation_actions() -> Sequence[type[FaultyAction]]:
    """Add the action."""
    return [FaultyAction]


@hookimpl
def agent_tools() -> Sequence[type[AgentTool[ToolParameters]]]:
    """Add the tools."""
    return [FaultyTool, ToolOfFaultySchema]


@hookimpl
def event_watchers() -> Sequence[type[FaultyWatcher]]:
    """Add the watcher."""
    return [FaultyWatcher]


@hookimpl
def private_data_detectors() -> Sequence[type[FaultyDetector]]:
    """Add the detector."""
    return [FaultyDetector]


@hookimpl
def event_published(event: PublishedEvent) -> object:
    """Go wrong in a thread."""
    if Fault.current == "waits forever":
        threading.Event().wait(BLOCK_SECONDS)  # The tests' clock would stand still during a sleep.
    return fail()
