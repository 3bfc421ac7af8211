"""Settings of an organization's Twilio account."""

from typing import Annotated, Literal

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, model_validator
from switchboard.plugin_sdk import ProviderSettings
from switchboard.plugin_sdk.sender_ids import SenderIds

Platform = Literal["web", "ios", "android"]


def _sid(prefix: str) -> StringConstraints:
    return StringConstraints(pattern=rf"^{prefix}[0-9a-fA-F]{{32}}$")


class TwilioSettings(ProviderSettings):
    """Credentials and ids from the Twilio console."""

    account_sid: Annotated[str, _sid("AC")] = Field(description="Id of the account, from the Twilio console.")
    auth_token: SecretStr = Field(
        min_length=1, description="Token of the account, from the Twilio console. It also signs Twilio's callbacks."
    )
    api_sid: Annotated[str, _sid("SK")] | None = Field(None, description="Id of an API key, for browser calls.")
    api_secret: SecretStr | None = Field(None, description="Secret of the API key, for browser calls.")
    application_sid: Annotated[str, _sid("AP")] | None = Field(None, description="Id of a TwiML app for browser calls.")
    ios_push_credential_sid: Annotated[str, _sid("CR")] | None = Field(
        None, description="Id of a push credential, for inbound calls to iOS apps."
    )
    android_push_credential_sid: Annotated[str, _sid("CR")] | None = Field(
        None, description="Id of a push credential, for inbound calls to Android apps."
    )
    messaging_service_sid: Annotated[str, _sid("MG")] | None = Field(
        None,
        description="Id of a messaging service, such as that of an A2P 10DLC campaign. Bought numbers are added to it, "
        "and texts are sent through it.",
    )
    sender_ids: SenderIds = Field(
        {},
        description="Alphanumeric senders of text messages by country of the recipient, such as GB: ACME. Recipients "
        "cannot answer them.",
    )
    address_sid: Annotated[str, _sid("AD")] | None = Field(
        None, description="Id of the address with which numbers are bought, where a country demands one."
    )
    bundle_sid: Annotated[str, _sid("BU")] | None = Field(
        None, description="Id of the regulatory bundle with which numbers are bought, where a country demands one."
    )
    record_calls: bool = Field(False, description="Twilio records each call in addition to the platform.")
    base_url: HttpUrl | None = Field(None, description="Another server for every request, such as a proxy.")

    @model_validator(mode="after")
    def _require_all_of_browser_calling(self) -> "TwilioSettings":
        parts = (self.api_sid, self.api_secret, self.application_sid)
        if any(parts) and not all(parts):
            raise ValueError("browser calling needs api_sid, api_secret and application_sid")
        return self
