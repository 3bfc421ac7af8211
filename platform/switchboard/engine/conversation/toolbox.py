"""The tools of one conversation. A failing tool reports its error to the model, never to the caller."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence

import msgspec
import structlog
from pydantic import ValidationError

from switchboard.engine.conversation.call import Tool
from switchboard.foundation.observability import traces
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.plugin_sdk import JsonObject, KeypadEntry, ToolCall, ToolContext, ToolError, ToolSpec

logger = structlog.get_logger()
MAX_TOOL_ROUNDS = 8
RESULT_CHARACTERS = 200_000
"""Longest result of a tool as JSON: the model reads it again with each answer."""


class Toolbox:
    """Tools by name, without those that the agent has `disabled`; `specs` describes them to the model."""

    def __init__(self, tools: Sequence[Tool], context: ToolContext, *, disabled: Collection[str] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._context = context
        specs: dict[str, ToolSpec] = {}
        for tool in tools:
            if tool.name not in disabled and (spec := _build_spec(tool)) is not None:
                self._tools[tool.name] = tool
                specs[tool.name] = spec
        self.specs = tuple(specs.values())

    def list_keypad_entries(self, call: ToolCall) -> Sequence[KeypadEntry]:
        """List the arguments of a tool call that the caller enters on the keypad."""
        tool = self._tools.get(call.name)
        return () if tool is None else tool.keypad_entries

    async def run(self, call: ToolCall, entered: Mapping[str, str] | None = None) -> JsonObject:
        """Run a tool call and return its result, or an object with an `error`.

        `entered` are the arguments from the keypad, None where there is no keypad.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            return {"error": f"there is no tool {call.name}"}
        if tool.keypad_entries:
            if entered is None:
                return {"error": f"{call.name} works on the phone only: the caller enters data on the keypad"}
            call = ToolCall(call.id, call.name, {**call.arguments, **entered})
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name}
        with traces.span(f"execute_tool {tool.name}", attributes) as span:
            result = await self._run(tool, call)
            if "error" in result:
                traces.fail(span, "ToolError")
            return result

    async def _run(self, tool: Tool, call: ToolCall) -> JsonObject:
        try:
            parameters = tool.Parameters.model_validate(call.arguments)
            async with asyncio.timeout(tool.time_limit_seconds):
                return _check_result(await tool.run(self._context, parameters))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            return {"error": "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)}
        except ToolError as error:
            return {"error": error.message}
        except TimeoutError:
            return {"error": f"{call.name} took too long"}
        except Exception as error:  # noqa: BLE001 - a plugin's tool may raise anything
            record_extension_fault("tool failed", tool, "run", error)
            return {"error": f"{call.name} failed"}


def _check_result(result: object) -> JsonObject:
    """Return a tool's result as the model can read it. Raises `TypeError` or `ValueError` for another one."""
    if not isinstance(result, dict):
        raise TypeError("a tool's result is not an object")
    # msgspec is faster by seven, and its JSON never longer: a result of megabytes does not hold the event loop.
    too_long = len(msgspec.json.encode(result)) > RESULT_CHARACTERS
    if too_long or len(json.dumps(result, allow_nan=False)) > RESULT_CHARACTERS:
        raise ValueError("a tool's result is too long")
    return result


def _build_spec(tool: Tool) -> ToolSpec | None:
    """Describe a tool to the model, without the arguments that the caller enters; None, with a line in the log, for one
    whose schema cannot be built.
    """
    try:
        schema, hidden = tool.schema(), {entry.parameter for entry in tool.keypad_entries}
        properties, required = schema.get("properties"), schema.get("required")
        if hidden and isinstance(properties, dict):
            schema = {**schema, "properties": {name: part for name, part in properties.items() if name not in hidden}}
            if isinstance(required, list):
                schema["required"] = [name for name in required if name not in hidden]
        json.dumps(schema, allow_nan=False)
    except Exception as error:  # noqa: BLE001 - a plugin's tool may raise anything
        record_extension_fault("tool left out", tool, "schema", error)
        return None
    return ToolSpec(tool.name, tool.description, schema)
