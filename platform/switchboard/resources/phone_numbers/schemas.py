"""API schemas of phone numbers."""

from dataclasses import asdict
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Destination,
    Moment,
    PartialBody,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
    show_example,
)
from switchboard.plugin_sdk import AvailableNumber
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import Schedule

FriendlyName = Annotated[str, Field(min_length=1, max_length=255)]
CarrierId = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Url = Annotated[str, Field(max_length=2048, examples=["https://example.com/hooks/closed"])]


class PhoneNumberBuy(RequestBody):
    """A number to buy, from the search results."""

    model_config = show_example(phone_number="+15550100200", friendly_name="Front desk")

    phone_number: PhoneNumberText = Field(description="E.164 number, from the search results.")
    friendly_name: FriendlyName | None = Field(None, description="Name for people; null: the number.")
    inbound_agent_id: ReferenceId | None = Field(
        None, description="Id of the agent that answers calls and text messages; null: nobody."
    )
    carrier_address: CarrierId | None = Field(
        None,
        description="Id of an address at the carrier, for a country that demands one; null: that of the carrier's "
        "settings. An addition.",
    )
    carrier_requirements: CarrierId | None = Field(
        None,
        description="Id of the documents at the carrier that a country demands: Twilio's bundle, Telnyx's requirement "
        "group, Plivo's compliance application; null: that of the carrier's settings. An addition.",
    )


MAX_ENTERED = 1000


class EnteredNumber(BaseModel):
    """A number that a trunk already has."""

    model_config = ConfigDict(extra="forbid")

    phone_number: PhoneNumberText = Field(description="E.164 number.")
    friendly_name: FriendlyName | None = Field(None, description="Name for people; null: the number.")


class PhoneNumbersImport(RequestBody):
    """Numbers of a carrier that sells none, such as a SIP trunk. All are entered, or none."""

    model_config = show_example(numbers=[{"phone_number": "+15550100200", "friendly_name": "Front desk"}])

    numbers: list[EnteredNumber] = Field(min_length=1, max_length=MAX_ENTERED, description="Numbers to enter.")
    inbound_agent_id: ReferenceId | None = Field(
        None, description="Id of the agent that answers their calls and text messages; null: nobody."
    )


class PhoneNumberUpdate(PartialBody):
    """A partial update of a phone number; null clears a value."""

    model_config = show_example(friendly_name="Front desk", inbound_agent_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11")
    friendly_name: FriendlyName = Field("-", description="Name for people.")
    inbound_agent_id: ReferenceId | None = Field(
        None, description="Id of the agent that answers calls and text messages; null: nobody."
    )
    schedule: Schedule | None = Field(None, description="Opening hours for calls; null: always open.")
    sms_schedule: Schedule | None = Field(
        None, description="Hours in which the agent answers text messages; null: always."
    )
    forward_number: Destination | None = Field(
        None,
        description="E.164 number to which the schedule forwards calls, or `client:` and the name of a client, which "
        "is an addition.",
    )
    forward_webhook_url: Url | None = Field(None, description="Address that the schedule asks what to do with a call.")


class NumberSearch(RequestBody):
    """Search criteria for phone numbers."""

    model_config = show_example(country="US", area_code="555")

    country: str = Field(pattern=r"^[A-Z]{2}$", description="ISO 3166 alpha-2.")
    area_code: str | None = Field(None, pattern=r"^\d{1,6}$", description="Digits after the country code; null: any.")


class PhoneNumberOut(Answer):
    """A phone number."""

    id: UUID = Field(description="Id of the phone number.")
    phone_number: str = Field(description="E.164 number.")
    friendly_name: str
    inbound_agent_id: UUID | None
    status: Literal["provisioning", "active", "pending_release", "released", "failed"] = Field(
        description="`provisioning` becomes `active` or `failed`; `pending_release` works until `release_at`."
    )
    schedule: dict[str, JsonValue] | None
    sms_schedule: dict[str, JsonValue] | None
    forward_number: str | None
    forward_webhook_url: str | None
    sms_active: bool = Field(description="True if the number can send and receive text messages.")
    created_at: CreatedAt
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
    def from_row(cls, number: PhoneNumber, *, new_secret: str | None = None) -> "PhoneNumberOut":
        return cls.model_validate(
            {**number.model_dump(exclude={"forward_webhook_secret"}), "forward_webhook_secret": new_secret}
        )


class EnteredNumbers(BaseModel):
    """Numbers that were entered."""

    items: list[PhoneNumberOut] = Field(description="Entered numbers, in the order of the request.")


class Capabilities(BaseModel):
    """Capabilities of a phone number."""

    voice: bool = Field(description="Takes and places calls.")
    sms: bool = Field(description="Sends and receives text messages.")
    mms: bool = Field(description="Sends and receives media messages.")


class AvailableNumberOut(BaseModel):
    """A phone number that can be bought."""

    phone_number: str = Field(description="E.164 number.")
    friendly_name: str = Field(description="The number as people write it.")
    country: str = Field(description="ISO 3166 alpha-2 code.")
    region: str | None = Field(description="Region, such as a state; null if the carrier does not say.")
    locality: str | None = Field(description="City; null if the carrier does not say.")
    postal_code: str | None = Field(description="Postal code; null if the carrier does not say.")
    number_type: Literal["local", "mobile", "toll_free", "national"] = Field(description="Kind of number.")
    capabilities: Capabilities = Field(description="What the number can do.")
    monthly_cost: float = Field(description="US dollars for each month.")
    setup_cost: float = Field(description="US dollars, once.")
    currency: str = Field(description="Always `USD`.")

    @classmethod
    def from_number(cls, number: AvailableNumber) -> "AvailableNumberOut":
        fields = asdict(number)
        return cls.model_validate({**fields, "capabilities": fields, "currency": "USD"})


class AvailableNumbers(BaseModel):
    """Search results."""

    items: list[AvailableNumberOut] = Field(description="Numbers that can be bought.")
