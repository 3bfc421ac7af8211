"""API schemas of phone numbers."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from switchboard.foundation.web.schemas import Answer, Moment, PartialBody, PhoneNumberText, ReferenceId, RequestBody
from switchboard.plugin_sdk import AvailableNumber
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import Schedule

FriendlyName = Annotated[str, Field(min_length=1, max_length=255)]
CarrierId = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Url = Annotated[str, Field(max_length=2048, examples=["https://example.com/hooks/closed"])]


class PhoneNumberBuy(RequestBody):
    """A number to buy, from the search results."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"phone_number": "+15550100200", "friendly_name": "Front desk"}]}
    )

    phone_number: PhoneNumberText
    friendly_name: FriendlyName | None = None
    inbound_agent_id: ReferenceId | None = None
    carrier_address: CarrierId | None = Field(
        None,
        description="Id of an address at the carrier, for a country that demands one. Default: that of the carrier's "
        "settings. An addition.",
    )
    carrier_requirements: CarrierId | None = Field(
        None,
        description="Id of the documents at the carrier that a country demands: Twilio's bundle, Telnyx's requirement "
        "group. Default: that of the carrier's settings. An addition.",
    )


class PhoneNumberUpdate(PartialBody):
    """A partial update of a phone number; null clears a value."""

    friendly_name: FriendlyName = "-"
    inbound_agent_id: ReferenceId | None = None
    schedule: Schedule | None = None
    sms_schedule: Schedule | None = None
    forward_number: PhoneNumberText | None = None
    forward_webhook_url: Url | None = None


class NumberSearch(RequestBody):
    """Search criteria for phone numbers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"country": "US", "area_code": "555"}]})

    country: str = Field(pattern=r"^[A-Z]{2}$", description="ISO 3166 alpha-2.")
    area_code: str | None = Field(None, pattern=r"^\d{1,6}$")


class PhoneNumberOut(Answer):
    """A phone number."""

    id: UUID
    phone_number: str
    friendly_name: str
    inbound_agent_id: UUID | None
    status: Literal["provisioning", "active", "pending_release", "released", "failed"]
    schedule: dict[str, JsonValue] | None
    sms_schedule: dict[str, JsonValue] | None
    forward_number: str | None
    forward_webhook_url: str | None
    sms_active: bool
    created_at: Moment
    release_at: Moment | None = Field(
        None, description="When a number with a scheduled release is released; an addition."
    )
    forward_webhook_secret: str | None = Field(
        None,
        description=(
            "Signs requests to `forward_webhook_url` like webhooks; shown once, in the response that set another URL. "
            "An addition."
        ),
    )

    @classmethod
    def of(cls, number: PhoneNumber, *, new_secret: str | None = None) -> "PhoneNumberOut":
        return cls.model_validate(
            {**number.model_dump(exclude={"forward_webhook_secret"}), "forward_webhook_secret": new_secret}
        )


class Capabilities(BaseModel):
    """Capabilities of a phone number."""

    voice: bool
    sms: bool
    mms: bool


class AvailableNumberOut(BaseModel):
    """A phone number that can be bought."""

    phone_number: str
    friendly_name: str
    country: str
    region: str | None
    locality: str | None
    postal_code: str | None
    number_type: Literal["local", "mobile", "toll_free", "national"]
    capabilities: Capabilities
    monthly_cost: float
    setup_cost: float
    currency: str

    @classmethod
    def of(cls, number: AvailableNumber) -> "AvailableNumberOut":
        return cls(
            phone_number=number.phone_number,
            friendly_name=number.friendly_name,
            country=number.country,
            region=number.region,
            locality=number.locality,
            postal_code=number.postal_code,
            number_type=number.number_type,
            capabilities=Capabilities(voice=number.voice, sms=number.sms, mms=number.mms),
            monthly_cost=number.monthly_cost,
            setup_cost=number.setup_cost,
            currency="USD",
        )


class AvailableNumbers(BaseModel):
    """Search results."""

    items: list[AvailableNumberOut]
