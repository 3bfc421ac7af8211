"""Settings of an organization's Telnyx account."""

from base64 import b64decode
from typing import Annotated

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, field_validator
from switchboard.plugin_sdk import ProviderSettings

KEY_BYTES = 32
Id = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}$")]
Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]


class TelnyxSettings(ProviderSettings):
    """`api_key` and `public_key` (which verifies Telnyx's webhooks) are from the Telnyx portal.

    `connection_id` names a Voice API application (formerly Call Control), `messaging_profile_id` is needed for text
    messages, and `credential_connection_id` names the SIP connection for browser calls. With `record_calls`, Telnyx
    records each call in addition to the platform. `base_url` sends every request to another server, such as a proxy.
    """

    api_key: SecretStr = Field(min_length=1)
    public_key: str
    connection_id: Id
    messaging_profile_id: Uuid | None = None
    credential_connection_id: Id | None = None
    record_calls: bool = False
    base_url: HttpUrl | None = None

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
