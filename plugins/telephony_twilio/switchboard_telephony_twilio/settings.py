"""What an operator says about an organization's Twilio account."""

from typing import Annotated, Literal

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, model_validator
from switchboard.plugin_sdk import ProviderSettings

Platform = Literal["web", "ios", "android"]


def _sid(prefix: str) -> StringConstraints:
    return StringConstraints(pattern=rf"^{prefix}[0-9a-fA-F]{{32}}$")


class TwilioSettings(ProviderSettings):
    """`account_sid` and `auth_token` are the console's; the token signs Twilio's callbacks too.

    `api_sid`, `api_secret` (an API key's) and `application_sid` (a TwiML app's) are needed for browser calling, the push credentials for phone
    apps that are to be rung. With `record_calls` Twilio records each call beside the platform. `base_url` sends every request to another server:
    a proxy's, or a test's.
    """

    account_sid: Annotated[str, _sid("AC")]
    auth_token: SecretStr = Field(min_length=1)
    api_sid: Annotated[str, _sid("SK")] | None = None
    api_secret: SecretStr | None = None
    application_sid: Annotated[str, _sid("AP")] | None = None
    ios_push_credential_sid: Annotated[str, _sid("CR")] | None = None
    android_push_credential_sid: Annotated[str, _sid("CR")] | None = None
    record_calls: bool = False
    base_url: HttpUrl | None = None

    @model_validator(mode="after")
    def _browser_calling_is_whole(self) -> "TwilioSettings":
        parts = (self.api_sid, self.api_secret, self.application_sid)
        if any(parts) and not all(parts):
            raise ValueError("browser calling needs api_sid, api_secret and application_sid")
        return self
