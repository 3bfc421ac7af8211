"""The tools of one conversation. A failing tool reports its error to the model, never to the caller."""

import asyncio
from collections.abc import Collection, Sequence

import structlog
from pydantic import ValidationError

from switchboard.engine.conversation.call import Tool
from switchboard.foundation.observability import traces
from switchboard.plugin_sdk import JsonObject, ToolCall, ToolContext, ToolError, ToolSpec

logger = structlog.get_logger()
MAX_TOOL_ROUNDS = 8


class Toolbox:
    """Tools by name, without those that the agent has `disabled`; `specs` describes them to the model."""

    def __init__(self, tools: Sequence[Tool], context: ToolContext, *, disabled: Collection[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools if tool.name not in disabled}
        self._context = context
        self.specs = tuple(ToolSpec(tool.name, tool.description, tool.schema()) for tool in self._tools.values())

    async def run(self, call: ToolCall) -> JsonObject:
        """Run a tool call and return its result, or an object with an `error`."""
        tool = self._tools.get(call.name)
        if tool is None:
            return {"error": f"there is no tool {call.name}"}
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
                return await tool.run(self._context, parameters)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            return {"error": "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)}
        except ToolError as error:
            return {"error": error.message}
        except TimeoutError:
            return {"error": f"{call.name} took too long"}
        except Exception:
            logger.exception("tool failed", tool=call.name)
            return {"error": f"{call.name} failed"}
