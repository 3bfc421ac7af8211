"""Action `send_sms`: send a text."""

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
"""To one number: an automation that answers a machine that answers stops here, because what comes in from outside has no depth."""


class SendSmsParams(ActionParams):
    """As `POST /v1/sms` takes them."""

    from_number_id: ReferenceId = Field(description="Id of one of the organization's numbers.")
    to_number: PhoneNumberText = Field(description="Whom to text.")
    body: Body = Field(description="The text, at most 1600 characters.")


class SendSms(DatabaseAction[SendSmsParams]):
    """Writes the text down to be sent; it is asked of the carrier once."""

    name, title, Params = "send_sms", "Send a text", SendSmsParams

    async def check(self, params: Mapping[str, JsonValue]) -> None:
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
                f"automations have texted this number {MAX_TEXTS_AN_HOUR} times within the hour", retryable=False
            )
        data = SmsCreate(from_number_id=params.from_number_id, to_number=params.to_number, body=params.body)
        return {"message_id": str((await sms.send_message(self.session, data, author="automation")).id)}
