"""Action `wait`: let time pass before the next action."""

from datetime import timedelta

from pydantic import Field

from switchboard.foundation.database import now
from switchboard.plugin_sdk import ActionContext, ActionParams, ActionPostponed, AutomationAction, JsonObject


class WaitParams(ActionParams):
    """How long."""

    seconds: int = Field(ge=1, le=30 * 24 * 3600, description="1 to 2 592 000, which is thirty days.")


class Wait(AutomationAction[WaitParams]):
    """Holds no worker up."""

    name, title, Params = "wait", "Wait", WaitParams

    async def run(self, context: ActionContext, params: WaitParams) -> JsonObject:
        until = context.began_at + timedelta(seconds=params.seconds)
        if now() < until:
            raise ActionPostponed(until)
        return {"seconds": params.seconds}
