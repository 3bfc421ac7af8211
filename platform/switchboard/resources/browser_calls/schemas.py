"""API schemas of browser calls."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from switchboard.foundation.web.schemas import Answer, ClientName, Moment

Platform = Literal["web", "ios", "android"]


class TokenQuery(BaseModel):
    """The client that needs a token."""

    model_config = ConfigDict(extra="forbid")

    platform: Platform = Field("web", description="Platform of the client.")
    identity: ClientName | None = Field(
        None,
        description="Name by which the client can be rung, as `client:<name>`: 1 to 50 letters, digits, and "
        "underscores. Without it, the client only calls. An addition.",
    )


class BrowserTokenOut(Answer):
    """Credentials for calls from a browser or an app."""

    token: str = Field(description="Token for the carrier's client SDK.")
    provider: str = Field(description="Name of the carrier's provider.")
    platform: Platform = Field(description="Platform of the client.")
    identity: str = Field(description="The client's identity at the carrier.")
    expires_at: Moment = Field(description="Time from which the token is refused.")
    connection: dict[str, str] = Field(description="Further settings of the SDK.")


class CallerIdOut(Answer):
    """A phone number that can be called from."""

    id: UUID = Field(description="Id of the phone number.")
    phone_number: str = Field(description="E.164 number.")
    friendly_name: str = Field(description="Name for people.")


class CallerIds(Answer):
    """The phone numbers that can be called from."""

    items: list[CallerIdOut] = Field(description="Phone numbers that can be called from.")
