"""The contract of a tool, and tests of this plugin's own."""

import pytest
from acme_vendor import Acme
from switchboard.plugin_sdk import ToolContext, ToolError
from switchboard.plugin_sdk.testing import AgentToolContract
from switchboard_acme import FindOrders, OrderParameters
from switchboard_acme.client import AcmeSettings


class TestFindOrders(AgentToolContract):
    @pytest.fixture
    def tool(self, settings: AcmeSettings) -> FindOrders:
        tool = FindOrders()
        tool.settings = settings
        return tool

    @pytest.fixture
    def parameters(self) -> OrderParameters:
        return OrderParameters(status="open")

    async def test_the_model_reads_the_vendors_words(
        self, tool: FindOrders, parameters: OrderParameters, context: ToolContext, acme: Acme
    ) -> None:
        acme.fault = 503
        with pytest.raises(ToolError, match="out of order"):
            await tool.run(context, parameters)
