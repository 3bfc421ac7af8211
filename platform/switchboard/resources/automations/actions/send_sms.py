"""Action `send_sms`: send a text message."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, JsonValue
from sqlalchemy import func
from sqlmodel import col, select

from switchboard.foundation.database import now
from switchboard.foundation.web.schemas import PhoneNumberText, ReferenceId
from switchboard.plugin_sdk import ActionContext, ActionError, ActionParams, JsonObject
from switchboard.resources.automations.action_dependencies import DatabaseAction
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.schemas import Body, SmsCreate

MAX_TEXTS_AN_HOUR = 60
"""Text messages to one number within an hour. The limit stops two machines that answer each other, because an
inbound message starts at depth 0.
"""


class SendSmsParams(ActionParams):
    """The parameters of `POST /v1/sms`."""

    from_number_id: ReferenceId = Field(description="Id of one of the organization's phone numbers.")
    to_number: PhoneNumberText = Field(description="Phone number of the recipient.")
    body: Body = Field(description="Body of the text message, at most 1600 characters.")


class SendSms(DatabaseAction[SendSmsParams]):
    """Save a text message to be sent; the carrier is asked once."""

    name, title, Params = "send_sms", "Send a text", SendSmsParams
    scope = "sms:write"

    async def check_params(self, params: Mapping[str, JsonValue]) -> None:
        if "from_number_id" in params:
            await numbers.require_number(self.session, str(params["from_number_id"]), field="from_number_id")

    async def run(self, context: ActionContext, params: SendSmsParams) -> JsonObject:
        rows = sms.list_messages(self.session).where(
            col(SmsMessage.created_at) > now() - timedelta(hours=1),
            col(SmsMessage.author) == "automation",
            col(SmsMessage.to_number) == params.to_number,
        )
        if (await self.session.exec(select(func.count()).select_from(rows.subquery()))).one() >= MAX_TEXTS_AN_HOUR:
            raise ActionError(
                f"automations have sent this number {MAX_TEXTS_AN_HOUR} text messages within the hour", retryable=False
            )
        data = SmsCreate(from_number_id=params.from_number_id, to_number=params.to_number, body=params.body)
        return {"message_id": str((await sms.send_message(self.session, data, author="automation")).id)}
