"""Transcript and measurements of a simulated conversation, in either mode."""

from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from switchboard.plugin_sdk import JsonObject, ModelUsage
from switchboard.resources.simulations.schemas import EndedBy


@dataclass(frozen=True, slots=True)
class Utterance:
    """An utterance, or a tool call with JSON as `content`."""

    role: Literal["user", "agent", "tool", "system"]
    content: str


@dataclass(frozen=True, slots=True)
class RecordedToolCall:
    """A tool call of the agent. The transcript of a real call has no arguments."""

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class SimulatedConversation:
    """A conversation as far as it went.

    `ended_by` is None for a failed one; `latencies` are milliseconds from the caller's last sound to the agent's first,
    in order. `models` and `embeddings` are the usage that no call is charged for.
    """

    ended_by: EndedBy | None = None
    spoken: list[Utterance] = field(default_factory=list)
    tools: list[RecordedToolCall] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    call_id: UUID | None = None
    models: list[ModelUsage] = field(default_factory=list)
    embeddings: list[ModelUsage] = field(default_factory=list)

    def add(self, role: Literal["user", "agent", "tool", "system"], content: str) -> None:
        """Add an utterance; an empty one is dropped."""
        if content:
            self.spoken.append(Utterance(role, content))

    @property
    def turns(self) -> int:
        """Number of the caller's turns."""
        return sum(entry.role == "user" for entry in self.spoken)

    @property
    def agent_said(self) -> list[str]:
        """The agent's turns."""
        return [entry.content for entry in self.spoken if entry.role == "agent"]


class SimulationError(Exception):
    """The conversation could not be held for reasons other than the agent; `message` is for the user."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
