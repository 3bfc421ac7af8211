"""Tools: functions that an agent's model may call during a conversation."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from switchboard.plugin_sdk.llm import JsonObject
from switchboard.plugin_sdk.provider import Extension


class ToolParameters(BaseModel):
    """Arguments of a tool. The model sees their JSON schema, so give each field a description."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolError(Exception):
    """A tool failed. `message` is sent to the model, never spoken to the caller directly."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Origin: TypeAlias = Literal["words", "keypad", "carrier", "crm", "metadata", "tool"]
"""Origin of a variable, from the least trusted one on: the caller's words as a model understood them, keys that the
caller pressed, facts that came with the call (numbers, SIP headers), the contact with the other party's number, the
metadata of the request that placed the call, and the result of a tool.
"""


@dataclass(frozen=True, slots=True)
class Variable:
    """A value of a conversation, and where it came from."""

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The conversation in which a tool is called: a call, or, if `call_id` is None, text messages of
    `conversation_id`.

    `person_number` is that of the two numbers which belongs to the person, and not to the organization; empty if the
    person has none, as a visitor of a website. `variables` are those of the conversation at each moment, by name.
    """

    organization_id: UUID
    agent_id: UUID
    call_id: UUID | None
    from_number: str
    to_number: str
    conversation_id: UUID | None = None
    person_number: str = ""
    variables: Mapping[str, Variable] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class KeypadEntry:
    """An argument that the caller enters on the phone's keypad. The model never sees it.

    `parameter` is the argument's name. `prompt` is spoken first, if it is not empty. The entry ends with `#`, after
    `max_digits`, or after five seconds without a key; `*` starts it again.
    """

    parameter: str
    prompt: str = ""
    max_digits: int = 20


ParametersT = TypeVar("ParametersT", bound=ToolParameters)


@lru_cache(maxsize=256)
def _generate_schema(parameters: type[ToolParameters]) -> str:
    """Generate a JSON schema once: it takes a millisecond, and each call has several tools."""
    return json.dumps(parameters.model_json_schema())


class AgentTool(Extension, ABC, Generic[ParametersT]):
    """A function that the model may call.

    `description` tells the model when to call it. A run that takes longer than `time_limit_seconds` fails. The caller
    enters the arguments of `keypad_entries`, in their order, before the run.
    """

    description: ClassVar[str]
    Parameters: ClassVar[type[ToolParameters]] = ToolParameters
    time_limit_seconds: ClassVar[float] = 10.0
    keypad_entries: ClassVar[Sequence[KeypadEntry]] = ()

    def schema(self) -> JsonObject:
        """Return the JSON schema (of type object) of the arguments, as sent to the model."""
        schema: JsonObject = json.loads(_generate_schema(self.Parameters))
        return schema

    @abstractmethod
    async def run(self, context: ToolContext, parameters: ParametersT) -> JsonObject:
        """Run the tool and return its result for the model. Raises `ToolError`."""
