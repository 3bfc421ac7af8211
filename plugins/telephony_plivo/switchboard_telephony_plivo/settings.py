"""Settings of an organization's Plivo account."""

from typing import Annotated

from pydantic import Field, HttpUrl, SecretStr, StringConstraints
from switchboard.plugin_sdk import ProviderSettings
from switchboard.plugin_sdk.sender_ids import SenderIds


class PlivoSettings(ProviderSettings):
    """Credentials and ids from the Plivo console."""

    auth_id: Annotated[str, StringConstraints(pattern=r"^(MA|SA)[A-Z0-9]{18}$")] = Field(
        description="Auth id of the account or subaccount, from the Plivo console."
    )
    auth_token: SecretStr = Field(
        min_length=1, description="Auth token of the account, from the Plivo console. It also signs Plivo's callbacks."
    )
    application_id: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}$")] = Field(
        description="Id of an XML application, to which bought numbers are assigned."
    )
    campaign_id: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{1,20}$")] | None = Field(
        None, description="Id of a 10DLC campaign, to which bought US numbers are linked."
    )
    sender_ids: SenderIds = Field(
        {},
        description="Alphanumeric senders of text messages by country of the recipient, such as GB: ACME. Recipients "
        "cannot answer them. Plivo removes spaces.",
    )
    compliance_application_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-zA-Z-]{1,64}$")] | None = Field(
        None, description="Id of the compliance application with which numbers are bought, where a country demands one."
    )
    base_url: HttpUrl | None = Field(None, description="Another server for every request, such as a proxy.")
