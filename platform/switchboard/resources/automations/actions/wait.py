"""Action `wait`: pause before the next action."""

from datetime import timedelta

from pydantic import Field

from switchboard.foundation.database import now
from switchboard.plugin_sdk import ActionContext, ActionParams, ActionPostponed, AutomationAction, JsonObject


class WaitParams(ActionParams):
    """The pause."""

    seconds: int = Field(ge=1, le=30 * 24 * 3600, description="Seconds, 1 to 2,592,000 (thirty days).")


class Wait(AutomationAction[WaitParams]):
    """Postpone the next action without occupying a worker."""

    name, title, Params = "wait", "Wait", WaitParams
    scope = None

    async def run(self, context: ActionContext, params: WaitParams) -> JsonObject:
        until = context.began_at + timedelta(seconds=params.seconds)
        if now() < until:
            raise ActionPostponed(until)
        return {"seconds": params.seconds}
