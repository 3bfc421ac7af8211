"""API schemas of webhook endpoints and deliveries."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo, field_validator

from switchboard.foundation.events.catalog import EventName
from switchboard.foundation.events.models import Delivery, EventTarget
from switchboard.foundation.events.outbox import read_payload
from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    GivenMoment,
    Moment,
    PageQuery,
    PartialBody,
    Query,
    RequestBody,
    UpdatedAt,
    show_example,
)

EventNames = Annotated[list[EventName], Field(max_length=100), AfterValidator(lambda names: list(dict.fromkeys(names)))]
Url = Annotated[str, Field(min_length=1, max_length=2048, examples=["https://example.com/hooks/switchboard"])]


class EndpointFields(RequestBody):
    """Fields that create and update share."""

    description: str | None = Field(None, max_length=1000, description="Free text for people.")
    events: EventNames | None = Field(None, description="Event names; omitted, null, or empty: every event.")


class EndpointCreate(EndpointFields):
    """A new endpoint."""

    model_config = show_example(url="https://example.com/hooks/switchboard", events=["call.completed", "call.failed"])

    url: Url = Field(description="A public address; https is strongly recommended.")


class EndpointUpdate(EndpointFields, PartialBody):
    """A partial update of an endpoint."""

    model_config = show_example(enabled=True)

    url: Url = Field("", description="Pending deliveries go to the new address.")
    enabled: bool = Field(True, description="Enabling resets `consecutive_failures`; pending deliveries continue.")


class EndpointOut(Answer):
    """A webhook endpoint."""

    id: UUID = Field(description="Id of the endpoint.")
    url: str
    description: str | None
    events: list[str] = Field(description="Empty: every event.")
    enabled: bool = Field(description="False: events make no new deliveries, and pending ones wait.")
    has_secret: bool = Field(description="True if requests are signed.")
    consecutive_failures: int = Field(
        description="Deliveries that ended `failed` since the last success; the 20th disables the endpoint."
    )
    previous_secret_expires_at: Moment | None = Field(
        description="Time until which the previous secret signs too; null if there is none."
    )
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def from_row(cls, endpoint: EventTarget) -> "EndpointOut":
        return cls.model_validate({**endpoint.model_dump(), "has_secret": endpoint.secret is not None})


class EndpointCreated(EndpointOut):
    """A webhook endpoint with its signing secret, which is shown only once."""

    secret: str = Field(examples=["whsec_…"], description="Secret that signs the requests.")


class RotateQuery(Query):
    """Options of a rotation."""

    grace: bool = Field(True, description="Whether the previous secret also signs for 24 hours.")


class RotatedSecret(Answer):
    """The new secret, which is shown only once."""

    secret: str = Field(examples=["whsec_…"], description="Secret that signs the requests from now on.")
    previous_secret_expires_at: Moment | None = Field(
        description="When the previous secret stops signing; null if it already has."
    )


class DeliveryQuery(PageQuery):
    """Filters of an endpoint's deliveries."""

    status: str | None = Field(None, max_length=64, description="`pending`, `delivered`, or `failed`")


class AllDeliveriesQuery(DeliveryQuery):
    """Filters of all deliveries."""

    target_kind: str | None = Field(None, max_length=64, description="`endpoint`, `agent`, or `integration`")


class DeliveryOut(Answer):
    """A webhook delivery."""

    id: UUID = Field(description="Value of `X-Webhook-Delivery-Id`.")
    endpoint_id: UUID | None = Field(description="Null for the webhook of an agent or of the integration.")
    target_kind: Literal["endpoint", "agent", "integration"] = Field(description="Kind of receiver.")
    event_type: str = Field(description="Name of the event.")
    status: Literal["pending", "delivered", "failed"] = Field(
        description="`pending` until it is delivered or has failed for good."
    )
    attempts: int = Field(description="Number of requests sent.")
    next_attempt_at: Moment | None = Field(description="Time of the next request; null once it is over.")
    last_status_code: int | None = Field(description="HTTP status of the last response; null without one.")
    last_error: str | None = Field(description="Reason of the last failure, in words.")
    replayed_from_id: UUID | None = Field(
        description="Id of the delivery that this one repeats; null if it repeats none."
    )
    payload: dict[str, JsonValue] = Field(
        description="The body as sent: `event`, `data`, `timestamp`; `unreadable` if its key was destroyed."
    )
    created_at: CreatedAt
    delivered_at: Moment | None = Field(description="Time of the successful response; null without one.")

    @classmethod
    def from_row(cls, delivery: Delivery) -> "DeliveryOut":
        endpoint_id = delivery.target_id if delivery.target_kind == "endpoint" else None
        return cls.model_validate(
            {**delivery.model_dump(), "endpoint_id": endpoint_id, "payload": read_payload(delivery)}
        )


class ReplayRequest(RequestBody):
    """The period whose failed deliveries are replayed, by the time of the event."""

    model_config = show_example(since="2026-11-20T09:30:00Z")

    since: GivenMoment = Field(description="Beginning of the period.")
    until: GivenMoment | None = Field(None, description="Omitted or null: until now.")

    @field_validator("until")
    @classmethod
    def _follow_since(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if value is not None and since is not None and value <= since:
            raise ValueError("must be after since")
        return value


class ReplayOut(Answer):
    """Result of a replay."""

    replayed: int = Field(description="Deliveries that were created, at most 1000.")
    has_more: bool = Field(description="Whether failed deliveries are left: repeat the request.")


class AttemptOut(Answer):
    """One request of a delivery. Of the receiver's response only the status is stored."""

    number: int = Field(description="Number of the attempt, from 1.")
    started_at: Moment = Field(description="Time of the request.")
    duration_ms: int = Field(description="Milliseconds to the response or the failure.")
    status_code: int | None = Field(description="HTTP status of the response; null without one.")
    error: str | None = Field(description="Null for a success.")


class AttemptsOut(Answer):
    """A delivery's attempts, in order."""

    items: list[AttemptOut] = Field(description="Attempts, oldest first.")


class EventOut(Answer):
    """An event that endpoints can subscribe to."""

    name: str = Field(description="Name of the event, such as `call.completed`.")
    description: str = Field(description="Occasion of the event.")


class EventsOut(Answer):
    """Every event."""

    items: list[EventOut] = Field(description="Every event that endpoints can subscribe to.")
