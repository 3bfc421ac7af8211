"""Dependencies injected into the built-in actions; otherwise they register like any plugin."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import JsonValue

from switchboard.foundation.database import TenantSession
from switchboard.foundation.outbound import OutboundClient
from switchboard.plugin_sdk import ActionParams, AutomationAction

ParamsT = TypeVar("ParamsT", bound=ActionParams)


class BuiltInAction(AutomationAction[ParamsT]):
    """An action of the platform."""

    async def check_params(self, params: Mapping[str, JsonValue]) -> None:
        """Validate the parameters that are not templates, when the automation is saved. Raises `ValidationFailed`
        with their names as fields.
        """


class DatabaseAction(BuiltInAction[ParamsT]):
    """An action whose effect is in the transaction of its result: after a crash both are there or neither.

    A refusal by a service fails the action permanently.
    """

    def __init__(self, session: TenantSession) -> None:
        self.session = session


class OutboundAction(BuiltInAction[ParamsT]):
    """An action that sends a request to a tenant's address, with no transaction open."""

    def __init__(self, outbound: OutboundClient) -> None:
        self.outbound = outbound
