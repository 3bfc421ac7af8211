"""How a simulated conversation went, whichever way it was held."""

from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from switchboard.plugin_sdk import JsonObject, ModelUsage
from switchboard.resources.simulations.assertions import EndedBy


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something said, or a tool that was called: `content` is JSON then."""

    role: Literal["user", "agent", "tool", "system"]
    content: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that the agent called. What a call's transcript holds has no arguments."""

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class Played:
    """A conversation as far as it went. `ended_by` is None for one that broke; `latencies` are milliseconds from the caller's last sound to the
    agent's first, in order. `models` and `embeddings` are what it used, but for what a call is charged for."""

    ended_by: EndedBy | None = None
    spoken: list[Spoken] = field(default_factory=list)
    tools: list[ToolUse] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    call_id: UUID | None = None
    models: list[ModelUsage] = field(default_factory=list)
    embeddings: list[ModelUsage] = field(default_factory=list)

    def add(self, role: Literal["user", "agent", "tool", "system"], content: str) -> None:
        """Something was said; nothing is no entry."""
        if content:
            self.spoken.append(Spoken(role, content))

    @property
    def turns(self) -> int:
        """How often the caller spoke."""
        return sum(entry.role == "user" for entry in self.spoken)

    @property
    def agent_said(self) -> list[str]:
        """The agent's turns."""
        return [entry.content for entry in self.spoken if entry.role == "agent"]


class NotPlayed(Exception):
    """The conversation could not be held, through no doing of the agent's; `message` is shown to whoever asked for it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
