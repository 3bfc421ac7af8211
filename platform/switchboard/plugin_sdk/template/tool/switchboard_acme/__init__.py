"""Acme: a tool that finds the caller's orders. Replace the request with your vendor's."""

from collections.abc import Sequence
from contextlib import aclosing

from pydantic import Field
from switchboard.plugin_sdk import (
    AgentTool,
    JsonObject,
    ProviderError,
    ToolContext,
    ToolError,
    ToolParameters,
    hookimpl,
)

from switchboard_acme.client import AcmeClient, AcmeExtension

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class OrderParameters(ToolParameters):
    """Arguments that the model gives."""

    status: str = Field("open", description="open, or closed")


class FindOrders(AcmeExtension, AgentTool[OrderParameters]):
    """Finds the caller's orders."""

    name = "acme_orders"
    description = "Find the caller's orders at Acme."
    Parameters = OrderParameters

    async def run(self, context: ToolContext, parameters: OrderParameters) -> JsonObject:
        """Ask Acme while the caller waits: the time limit is `time_limit_seconds`."""
        try:
            async with aclosing(AcmeClient(self.settings)) as client:
                query = {"phone_number": context.from_number, "status": parameters.status}
                return {"orders": await client.request("GET", "/orders", params=query)}
        except ProviderError as error:
            raise ToolError(error.message) from error


@hookimpl
def agent_tools() -> Sequence[type[FindOrders]]:
    return [FindOrders]
