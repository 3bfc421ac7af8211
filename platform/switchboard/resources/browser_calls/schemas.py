"""Browser calling on the wire (api-decisions, "Objects")."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from switchboard.foundation.web.schemas import Answer, Moment
from switchboard.resources.phone_numbers.models import PhoneNumber

Platform = Literal["web", "ios", "android"]


class TokenQuery(BaseModel):
    """For what the token is."""

    model_config = ConfigDict(extra="forbid")

    platform: Platform = "web"


class BrowserTokenOut(Answer):
    """Lets a browser or an app call."""

    token: str = Field(description="What the carrier's own client SDK is given.")
    provider: str
    platform: Platform
    identity: str = Field(description="Who calls, as the carrier knows them.")
    expires_at: Moment
    connection: dict[str, str] = Field(description="What that SDK needs beside the token.")


class CallerIdOut(Answer):
    """A number that can be called from."""

    id: UUID
    phone_number: str
    friendly_name: str

    @classmethod
    def of(cls, number: PhoneNumber) -> "CallerIdOut":
        return cls.model_validate(number)


class CallerIds(Answer):
    """The numbers."""

    items: list[CallerIdOut]
