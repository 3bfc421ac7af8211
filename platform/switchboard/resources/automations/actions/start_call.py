"""Action `start_call`: place a call."""

from collections.abc import Mapping

from pydantic import Field, JsonValue, ValidationError

from switchboard.foundation.web.errors import TooManyCalls, ValidationFailed
from switchboard.foundation.web.schemas import PhoneNumberText, ReferenceId
from switchboard.plugin_sdk import ActionContext, ActionError, ActionParams, JsonObject
from switchboard.resources.agents import service as agents
from switchboard.resources.automations.action_dependencies import DatabaseAction
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.schemas import CallCreate
from switchboard.resources.phone_numbers import service as numbers


class StartCallParams(ActionParams):
    """The parameters of `POST /v1/calls`."""

    agent_id: ReferenceId = Field(description="Id of the agent.")
    from_number_id: ReferenceId = Field(
        description="Id of one of the organization's phone numbers, used as the caller ID."
    )
    to_number: PhoneNumberText = Field(description="Phone number to call.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="Values for `{{name}}` in prompt and greeting; included in the call's events."
    )


class StartCall(DatabaseAction[StartCallParams]):
    """Save a call to be placed; the carrier is asked once. Waits while the organization is at its concurrency limit."""

    name, title, Params = "start_call", "Start a call", StartCallParams
    scope = "calls:write"

    async def check_params(self, params: Mapping[str, JsonValue]) -> None:
        if "from_number_id" in params:
            await numbers.require_number(self.session, str(params["from_number_id"]), field="from_number_id")
        if "agent_id" in params:
            await agents.require_agent(self.session, str(params["agent_id"]))

    async def run(self, context: ActionContext, params: StartCallParams) -> JsonObject:
        try:
            data = CallCreate.model_validate(params.model_dump())
        except ValidationError as error:
            raise ValidationFailed.from_error(error) from None
        try:
            call = await calls.place_call(self.session, data)
        except TooManyCalls as error:
            raise ActionError(error.detail) from None
        return {"call_id": str(call.id)}
