"""Settings of an organization's Telnyx account."""

from base64 import b64decode
from typing import Annotated

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, field_validator, model_validator
from switchboard.plugin_sdk import ProviderSettings
from switchboard.plugin_sdk.sender_ids import SenderIds

KEY_BYTES = 32
Id = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}$")]
Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]


class TelnyxSettings(ProviderSettings):
    """Credentials and ids from the Telnyx portal."""

    api_key: SecretStr = Field(min_length=1, description="An API key of the Telnyx portal.")
    public_key: str = Field(description="The public key of the Telnyx portal, which verifies Telnyx's webhooks.")
    connection_id: Id = Field(description="Id of a Voice API application (formerly Call Control).")
    messaging_profile_id: Uuid | None = Field(None, description="Id of a messaging profile, for text messages.")
    campaign_id: str | None = Field(
        None,
        min_length=1,
        description="Id of a 10DLC campaign, to which bought US numbers are assigned. It needs messaging_profile_id.",
    )
    sender_ids: SenderIds = Field(
        {},
        description="Alphanumeric senders of text messages by country of the recipient, such as GB: ACME. Recipients "
        "cannot answer them. They need messaging_profile_id.",
    )
    requirement_group_id: Uuid | None = Field(
        None, description="Id of the requirement group with which numbers are bought, where a country demands one."
    )
    credential_connection_id: Id | None = Field(None, description="Id of the SIP connection for browser calls.")
    record_calls: bool = Field(False, description="Telnyx records each call in addition to the platform.")
    base_url: HttpUrl | None = Field(None, description="Another server for every request, such as a proxy.")

    @field_validator("public_key")
    @classmethod
    def _validate_public_key(cls, value: str) -> str:
        try:
            key = b64decode(value, validate=True)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise ValueError("not an Ed25519 public key in base64")
        return value

    @model_validator(mode="after")
    def _require_profile(self) -> "TelnyxSettings":
        if self.campaign_id is not None and self.messaging_profile_id is None:
            raise ValueError("campaign_id needs messaging_profile_id")
        if self.sender_ids and self.messaging_profile_id is None:
            raise ValueError("sender_ids need messaging_profile_id")
        return self
