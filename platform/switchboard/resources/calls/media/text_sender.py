"""Text messages that an agent sends during a call."""

from dataclasses import dataclass

from switchboard.foundation.database import Database
from switchboard.foundation.events.triggers import set_cause_depth
from switchboard.foundation.web.errors import ApiError
from switchboard.plugin_sdk import ToolError
from switchboard.resources.calls.models import Call
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms


@dataclass(frozen=True, slots=True)
class CallTextSender:
    """Sends text messages from our number of the call (`TextSender` of the engine)."""

    database: Database
    call: Call

    async def send_text(self, body: str, to_number: str | None) -> None:
        inbound = self.call.direction == "inbound"
        own, other = (
            (self.call.to_number, self.call.from_number) if inbound else (self.call.from_number, self.call.to_number)
        )
        target = to_number or other
        if not target.startswith("+"):
            raise ToolError("the caller's number is withheld: ask for one")
        async with self.database.tenant(self.call.organization_id) as session:
            set_cause_depth(session, self.call.cause_depth)
            number = await numbers.find_phone_number(session, own)
            if number is None:
                raise ToolError("the call's phone number is not the organization's any more")
            try:
                content = sms.MessageContent(body)
                await sms.compose_message(session, number, target, content, author="agent", agent_id=self.call.agent_id)
            except ApiError as error:
                raise ToolError(error.detail) from error
