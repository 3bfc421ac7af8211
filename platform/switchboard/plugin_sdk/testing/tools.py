"""The contract of capability `agent_tool`."""

import json
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from switchboard.plugin_sdk.testing.contract import ExtensionContract
from switchboard.plugin_sdk.tools import AgentTool, ToolContext, ToolParameters


class AgentToolContract(ExtensionContract):
    """Rules of every agent tool. Override `tool` and `parameters`."""

    @pytest.fixture
    def tool(self) -> AgentTool[Any]:
        """The tool under test, with its settings if it has any. Must be overridden."""
        raise NotImplementedError("override the fixture `tool` of this contract")

    @pytest.fixture
    def parameters(self) -> ToolParameters:
        """Arguments with which the tool succeeds. Must be overridden."""
        raise NotImplementedError("override the fixture `parameters` of this contract")

    @pytest.fixture
    def extension(self, tool: AgentTool[Any]) -> AgentTool[Any]:
        return tool

    @pytest.fixture
    def context(self) -> ToolContext:
        """A call."""
        return ToolContext(uuid4(), uuid4(), uuid4(), "+15550100001", "+15550100200")

    async def test_the_model_sees_the_schema_of_an_object(self, tool: AgentTool[Any]) -> None:
        """Vendors accept nothing else. If this fails, return the JSON schema of an object from `schema`."""
        assert json.loads(json.dumps(tool.schema()))["type"] == "object"

    async def test_its_parameters_refuse_unknown_keys(self, tool: AgentTool[Any], parameters: ToolParameters) -> None:
        """Models invent arguments. If this fails, make `Parameters` a subclass of `ToolParameters`."""
        assert isinstance(parameters, tool.Parameters)
        with pytest.raises(ValidationError):
            tool.Parameters.model_validate({**parameters.model_dump(), "no_such_parameter": 1})

    async def test_it_answers_a_json_object(
        self, tool: AgentTool[Any], parameters: ToolParameters, context: ToolContext
    ) -> None:
        """The result is sent to the model. If this fails, return a dict of plain JSON values."""
        result = await tool.run(context, parameters)
        assert isinstance(result, dict)
        assert json.loads(json.dumps(result)) == result
