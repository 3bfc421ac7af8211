"""API schemas of the integration."""

from typing import Annotated

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, PartialBody, UpdatedAt, show_example

Secret = Annotated[str, Field(min_length=1, max_length=255)]
Url = Annotated[str, Field(min_length=1, max_length=2048, examples=["https://example.com/hooks/partner"])]


class IntegrationUpdate(PartialBody):
    """A partial update of the integration; null removes a value."""

    model_config = show_example(
        webhook_url="https://example.com/hooks/partner",
        webhook_secret="s3cret",  # noqa: S106 - an example
    )

    partner_api_key: Secret | None = Field(None, description="Stored encrypted; never returned.")
    webhook_url: Url | None = Field(None, description="Receives every event of the organization.")
    webhook_secret: Secret | None = Field(None, description="Signs the requests to the webhook; never returned.")


class IntegrationOut(Answer):
    """The integration without its secrets."""

    has_partner_api_key: bool = Field(description="True if an API key of the partner is stored.")
    webhook_url: str | None
    has_webhook_secret: bool = Field(description="True if requests to the webhook are signed.")
    updated_at: UpdatedAt
