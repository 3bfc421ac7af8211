"""Tools of plugins that go wrong: the model reads that they failed, and the call goes on."""

from uuid import UUID

import pytest
from switchboard.engine.conversation.toolbox import RESULT_CHARACTERS, Toolbox
from switchboard.plugin_sdk import AgentTool, JsonObject, ToolCall, ToolContext, ToolParameters

CONTEXT = ToolContext(UUID(int=1), UUID(int=2), None, "+15550100001", "+15550100200")


class FaultyTool(AgentTool[ToolParameters]):
    """Returns anything."""

    name, description = "faulty", "Returns anything."

    def __init__(self, result: object) -> None:
        self._result = result

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result  # type: ignore[return-value] # that is the fault


@pytest.mark.parametrize(
    "result",
    [None, "text", ["list"], {"object": object()}, {"text": "x" * RESULT_CHARACTERS}, KeyError("+15550100001")],
    ids=["nothing", "text", "list", "no JSON", "too long", "exception"],
)
async def test_the_model_reads_that_the_tool_failed(result: object) -> None:
    toolbox = Toolbox([FaultyTool(result)], CONTEXT)
    assert await toolbox.run(ToolCall("1", "faulty", {})) == {"error": "faulty failed"}
