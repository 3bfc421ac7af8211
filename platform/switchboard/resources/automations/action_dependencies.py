"""What the built-in actions stand on. They register through the same hook as everybody's; what they are made with is all that sets them apart."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import JsonValue

from switchboard.foundation.database import TenantSession
from switchboard.foundation.outbound import OutboundClient
from switchboard.plugin_sdk import ActionParams, AutomationAction

ParamsT = TypeVar("ParamsT", bound=ActionParams)


class BuiltInAction(AutomationAction[ParamsT]):
    """An action of the platform's own."""

    async def check(self, params: Mapping[str, JsonValue]) -> None:
        """Look at the parameters that are no templates, when the automation is written. Raises `ValidationFailed` with their names as fields."""


class DatabaseAction(BuiltInAction[ParamsT]):
    """Writes in the transaction in which its result is kept: after a crash it has done both or nothing. What a service refuses fails it for good."""

    def __init__(self, session: TenantSession) -> None:
        self.session = session


class OutboundAction(BuiltInAction[ParamsT]):
    """Sends a request to an address that a tenant chose, with no transaction open."""

    def __init__(self, outbound: OutboundClient) -> None:
        self.outbound = outbound
