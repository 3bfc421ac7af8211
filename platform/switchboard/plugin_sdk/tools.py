"""Functions that an agent's model may call during a conversation."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from switchboard.plugin_sdk.llm import JsonObject


class ToolParameters(BaseModel):
    """A tool's arguments; its JSON schema is what the model sees, so give each field a description."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolError(Exception):
    """A tool failed; `message` is told to the model, never to the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The conversation in which a tool is called: a call, or, with `call_id` None, the texts of `conversation_id`."""

    organization_id: UUID
    agent_id: UUID
    call_id: UUID | None
    from_number: str
    to_number: str
    conversation_id: UUID | None = None


ParametersT = TypeVar("ParametersT", bound=ToolParameters)


class AgentTool(ABC, Generic[ParametersT]):
    """A function that the model may call. `description` tells the model when; `time_limit_seconds` ends a slow one as failed."""

    name: ClassVar[str]
    description: ClassVar[str]
    Parameters: ClassVar[type[ToolParameters]] = ToolParameters
    time_limit_seconds: ClassVar[float] = 10.0

    def schema(self) -> JsonObject:
        """What the model is told of the arguments: a JSON schema of type object."""
        return self.Parameters.model_json_schema()

    @abstractmethod
    async def run(self, context: ToolContext, parameters: ParametersT) -> JsonObject:
        """Do it, and return what the model is told. Raises `ToolError`."""
