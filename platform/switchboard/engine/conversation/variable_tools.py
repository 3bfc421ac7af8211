"""Tools by which an agent learns the variables of a conversation."""

from collections.abc import Sequence
from typing import Final, Protocol

from pydantic import Field, create_model

from switchboard.engine.conversation.agent_settings import AgentSettings, AgentVariable
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.variables import MOST_CHARACTERS
from switchboard.foundation.conditions import look_up
from switchboard.plugin_sdk import AgentTool, JsonObject, KeypadEntry, Origin, ToolContext, ToolParameters

ENTRY_PREFIX: Final = "key_in_"


class VariableTaker(Protocol):
    """Takes what an agent's tools learn."""

    async def learn(self, name: str, value: str, origin: Origin) -> bool:
        """Set a variable; return False if it has that value already, or one of a better origin."""
        ...


class NoteVariables(AgentTool[ToolParameters]):
    """Notes what the caller has said, as the model understood it."""

    name = "note_variables"
    description = (
        "Note values that the caller has just said, each as soon as you know it, and again if the caller corrects it."
    )

    def __init__(self, variables: Sequence[AgentVariable], taker: VariableTaker) -> None:
        fields = {
            each.name: (str | None, Field(None, max_length=MOST_CHARACTERS, description=each.description))
            for each in variables
        }
        self.Parameters = create_model(  # type: ignore[misc, call-overload]
            "NotedVariables", __base__=ToolParameters, **fields
        )
        self._taker = taker

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        said = {name: value for name, value in parameters if value is not None and str(value).strip()}
        kept = [name for name, value in said.items() if not await self._taker.learn(name, str(value).strip(), "words")]
        known = [name for name in kept if context.variables[name].origin != "words"]
        return {"noted": [*said], **({"known_better": [*known]} if known else {})}


class EnteredDigits(ToolParameters):
    """Parameters of a tool that lets the caller enter a variable."""

    digits: str = Field(max_length=50, pattern=r"^[0-9*]+$")


class KeyIn(AgentTool[EnteredDigits]):
    """Lets the caller enter a variable on the keypad. The model does not see it."""

    Parameters = EnteredDigits

    def __init__(self, variable: AgentVariable, taker: VariableTaker) -> None:
        self.name = f"{ENTRY_PREFIX}{variable.name}"  # type: ignore[misc]
        about = variable.description.strip() or variable.name
        self.description = f"Let the caller enter this on the keypad: {about}"  # type: ignore[misc]
        self.keypad_entries = [  # type: ignore[misc]
            KeypadEntry("digits", variable.prompt, variable.max_digits)
        ]
        self._variable, self._taker = variable, taker

    async def run(self, context: ToolContext, parameters: EnteredDigits) -> JsonObject:
        await self._taker.learn(self._variable.name, parameters.digits, "keypad")
        return {"entered": True}


def build_variable_tools(settings: AgentSettings, taker: VariableTaker) -> list[Tool]:
    """Build the tools by which an agent learns its variables."""
    said = [each for each in settings.variables if each.source == "words"]
    entered = [KeyIn(each, taker) for each in settings.variables if each.source == "keypad"]
    return [*([NoteVariables(said, taker)] if said else []), *entered]


def read_result(settings: AgentSettings, tool: str, result: JsonObject) -> dict[str, str]:
    """Return the variables that an agent learns from a tool's result; none from a failed one."""
    found = {}
    for each in settings.variables if "error" not in result else ():
        if each.source == "tool" and each.tool == tool:
            value = look_up(result, each.path)
            if isinstance(value, str | int | float) and str(value).strip():
                found[each.name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
