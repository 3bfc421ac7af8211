"""API schemas of browser calls."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from switchboard.foundation.web.schemas import Answer, Moment
from switchboard.resources.phone_numbers.models import PhoneNumber

Platform = Literal["web", "ios", "android"]


class TokenQuery(BaseModel):
    """The client that needs a token."""

    model_config = ConfigDict(extra="forbid")

    platform: Platform = "web"


class BrowserTokenOut(Answer):
    """Credentials for calls from a browser or an app."""

    token: str = Field(description="Token for the carrier's client SDK.")
    provider: str
    platform: Platform
    identity: str = Field(description="The caller's identity at the carrier.")
    expires_at: Moment
    connection: dict[str, str] = Field(description="Further settings of the SDK.")


class CallerIdOut(Answer):
    """A phone number that can be called from."""

    id: UUID
    phone_number: str
    friendly_name: str

    @classmethod
    def of(cls, number: PhoneNumber) -> "CallerIdOut":
        return cls.model_validate(number)


class CallerIds(Answer):
    """The phone numbers that can be called from."""

    items: list[CallerIdOut]
