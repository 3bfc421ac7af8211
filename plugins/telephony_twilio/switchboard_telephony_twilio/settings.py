"""Settings of an organization's Twilio account."""

from typing import Annotated, Literal

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, model_validator
from switchboard.plugin_sdk import ProviderSettings

Platform = Literal["web", "ios", "android"]


def _sid(prefix: str) -> StringConstraints:
    return StringConstraints(pattern=rf"^{prefix}[0-9a-fA-F]{{32}}$")


class TwilioSettings(ProviderSettings):
    """`account_sid` and `auth_token` are from the Twilio console; the token also signs Twilio's callbacks.

    `api_sid`, `api_secret` (of an API key), and `application_sid` (of a TwiML app) are needed for browser calls; the
    push credentials for inbound calls to phone apps. With `record_calls`, Twilio records each call in addition to the
    platform. `base_url` sends every request to another server, such as a proxy.
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
    def _require_all_of_browser_calling(self) -> "TwilioSettings":
        parts = (self.api_sid, self.api_secret, self.application_sid)
        if any(parts) and not all(parts):
            raise ValueError("browser calling needs api_sid, api_secret and application_sid")
        return self
