"""The built-in actions of automations. They register like those of any plugin, and get what they depend on."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import uuid5

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError

from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.outbound import OutboundClient, OutboundError, validate_public_url
from switchboard.foundation.web.errors import (
    InvalidState,
    OrganizationMoving,
    ProviderFailed,
    SlotTaken,
    TooManyCalls,
    ValidationFailed,
)
from switchboard.foundation.web.schemas import GivenMoment, PhoneNumberText, ReferenceId, parse_id
from switchboard.plugin_sdk import (
    ActionContext,
    ActionError,
    ActionParams,
    ActionPostponed,
    AutomationAction,
    JsonObject,
    hookimpl,
)
from switchboard.resources.agents import service as agents
from switchboard.resources.appointments import appointment_types
from switchboard.resources.appointments.availability import LONGEST_PERIOD
from switchboard.resources.appointments.booking import AppointmentBook, Origin
from switchboard.resources.appointments.models import Appointment
from switchboard.resources.appointments.schemas import AppointmentCreate, FieldAnswers
from switchboard.resources.appointments.slots import RESOLUTION
from switchboard.resources.automations.queries import count_automated_messages
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.schemas import CallCreate
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.campaigns.schemas import ContactToCall
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactFields, ContactUpdate, Label
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.schemas import Body, SmsCreate

ParamsT = TypeVar("ParamsT", bound=ActionParams)


@hookimpl
def automation_actions() -> Sequence[type[AutomationAction[Any]]]:
    """Return the built-in actions (docs/decisions/0009-automation-conditions-and-templates.md)."""
    return [SendSms, StartCall, HttpRequest, UpsertContact, TagContact, AddToCampaign, BookFreeTime, Wait]


@dataclass(frozen=True, slots=True)
class ActionServices:
    """Services that built-in actions use with no transaction open."""

    outbound: OutboundClient
    book: AppointmentBook


class BuiltInAction(AutomationAction[ParamsT]):
    """An action of the platform."""

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        """Validate the parameters that are not templates, when the automation is saved. Raises `ValidationFailed`
        with their names as fields.
        """


class DatabaseAction(BuiltInAction[ParamsT]):
    """An action whose effect is in the transaction of its result: after a crash both are there or neither.

    A refusal by a service fails the action permanently.
    """

    def __init__(self, session: WriteSession) -> None:
        self.session = session


class OutboundAction(BuiltInAction[ParamsT]):
    """An action that asks other systems, with no transaction open. `depth` is the length of the automation chain."""

    def __init__(self, services: ActionServices, depth: int = 0) -> None:
        self.services = services
        self.depth = depth


MAX_TEXTS_AN_HOUR = 60
"""Text messages to one number within an hour. The limit stops two machines that answer each other, because an
inbound message starts at depth 0.
"""


class SendSmsParams(ActionParams):
    """The parameters of `POST /v1/sms`."""

    from_number_id: ReferenceId = Field(description="Id of one of the organization's phone numbers.")
    to_number: PhoneNumberText = Field(description="Phone number of the recipient.")
    body: Body = Field(description="Body of the text message, at most 1600 characters.")


class SendSms(DatabaseAction[SendSmsParams]):
    """Save a text message to be sent; the carrier is asked once."""

    name, title, Params = "send_sms", "Send a text", SendSmsParams
    scope = "sms:write"

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        if "from_number_id" in params:
            await numbers.require_number(session, str(params["from_number_id"]), field="from_number_id")

    async def run(self, context: ActionContext, params: SendSmsParams) -> JsonObject:
        if await count_automated_messages(self.session, params.to_number) >= MAX_TEXTS_AN_HOUR:
            raise ActionError(
                f"automations have sent this number {MAX_TEXTS_AN_HOUR} text messages within the hour", retryable=False
            )
        data = SmsCreate(from_number_id=params.from_number_id, to_number=params.to_number, body=params.body)
        return {"message_id": str((await sms.send_message(self.session, data, author="automation")).id)}


class StartCallParams(ActionParams):
    """The parameters of `POST /v1/calls`."""

    agent_id: ReferenceId = Field(description="Id of the agent.")
    from_number_id: ReferenceId = Field(
        description="Id of one of the organization's phone numbers, used as the caller ID."
    )
    to_number: PhoneNumberText = Field(description="Phone number to call.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="Values for `{{name}}` in prompt and greeting; included in the call's events."
    )


class StartCall(DatabaseAction[StartCallParams]):
    """Save a call to be placed; the carrier is asked once. Waits while the organization is at its concurrency limit."""

    name, title, Params = "start_call", "Start a call", StartCallParams
    scope = "calls:write"

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        if "from_number_id" in params:
            await numbers.require_number(session, str(params["from_number_id"]), field="from_number_id")
        if "agent_id" in params:
            await agents.require_agent(session, str(params["agent_id"]))

    async def run(self, context: ActionContext, params: StartCallParams) -> JsonObject:
        try:
            data = CallCreate.model_validate(params.model_dump())
        except ValidationError as error:
            raise ValidationFailed.from_error(error) from None
        try:
            call = await calls.place_call(self.session, data)
        except (OrganizationMoving, TooManyCalls) as error:
            raise ActionError(error.detail) from None
        return {"call_id": str(call.id)}


REQUEST_SECONDS: Final = 15.0
RETRYABLE: Final = (408, 425, 429)
MAX_HEADERS: Final = 20
# Headers that control the connection are not the tenant's to set.
OURS: Final = (
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
)


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", name):
        raise ValueError("is not a header name")
    if name.lower() in OURS or name.lower().startswith("proxy-"):
        raise ValueError("is set by the platform")
    return name


def _header_value(value: str) -> str:
    if not re.fullmatch(r"[\t\x20-\x7e]*", value):
        raise ValueError("must be printable ASCII, on one line")
    return value


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, Field(max_length=4096), AfterValidator(_header_value)]


class HttpRequestParams(ActionParams):
    """Parameters of the request."""

    url: str = Field(
        min_length=1,
        max_length=2048,
        description="A public address; private, loopback, and reserved addresses are refused.",
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "POST", description="GET, POST (the default), PUT, PATCH or DELETE."
    )
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict, max_length=MAX_HEADERS, description="Header names and values, at most 20."
    )
    body: JsonValue = Field(
        None, description="A text is sent as is, an object or list as JSON; without it no body is sent."
    )


class HttpRequest(OutboundAction[HttpRequestParams]):
    """Send a request with an `Idempotency-Key`. A 2xx response succeeds; any other but 408, 425, 429, and 5xx fails
    permanently.

    The response is never stored: an automation could use it to read inside the network.
    """

    name, title, Params = "http_request", "Call an HTTP endpoint", HttpRequestParams
    scope = "webhooks:write"

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        if "url" in params:
            validate_public_url(self.services.outbound, str(params["url"]), field="url")

    async def run(self, context: ActionContext, params: HttpRequestParams) -> JsonObject:
        headers = {"User-Agent": "Switchboard/1.0", "Idempotency-Key": context.idempotency_key}
        body: bytes | None = None
        if isinstance(params.body, str):
            headers["Content-Type"], body = "text/plain; charset=utf-8", params.body.encode()
        elif params.body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(params.body, ensure_ascii=False).encode()
        given = {name.lower() for name in params.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in given} | params.headers
        began = monotonic()
        try:
            answer = await self.services.outbound.request(
                params.method, params.url, body, headers=headers, seconds=REQUEST_SECONDS, read_limit=0
            )
        except OutboundError as error:
            raise ActionError(str(error), retryable=error.kind != "forbidden_address") from None
        if not 200 <= answer.status < 300:
            raise ActionError(
                f"the endpoint returned status {answer.status}",
                retryable=answer.status in RETRYABLE or answer.status >= 500,
            )
        return {"status_code": answer.status, "duration_ms": round((monotonic() - began) * 1000)}


class UpsertContactParams(ActionParams, ContactFields):
    """The parameters of `PATCH /v1/contacts/{contact_id}`."""

    model_config = ConfigDict(strict=False)

    phone_number: PhoneNumberText = Field(description="Whose contact.")


class UpsertContact(DatabaseAction[UpsertContactParams]):
    """Change the given fields of the contact of a phone number, which is created if needed."""

    name, title, Params = "upsert_contact", "Create or update a contact", UpsertContactParams
    scope = "contacts:write"

    async def run(self, context: ActionContext, params: UpsertContactParams) -> JsonObject:
        contact, created = await contacts.get_or_create_contact(self.session, params.phone_number)
        await contacts.update_contact(self.session, contact.id, ContactUpdate(**params.model_dump(exclude_unset=True)))
        return {"contact_id": str(contact.id), "created": created}


def _one_tag(value: str) -> str:
    tag = value.strip()
    if not tag or "," in tag:
        raise ValueError("must be one tag without a comma")
    return tag


class TagContactParams(ActionParams):
    """The contact and the tag."""

    phone_number: PhoneNumberText = Field(description="Whose contact.")
    tag: Annotated[
        str,
        Field(max_length=MAX_LABEL, description="One tag; a contact's `tags` are separated by commas."),
        AfterValidator(_one_tag),
    ]


class TagContact(DatabaseAction[TagContactParams]):
    """Add a tag to the contact of a phone number, which is created if needed. A tag that is there in any letter case
    stays.
    """

    name, title, Params = "tag_contact", "Tag a contact", TagContactParams
    scope = "contacts:write"

    async def run(self, context: ActionContext, params: TagContactParams) -> JsonObject:
        contact, _ = await contacts.get_or_create_contact(self.session, params.phone_number)
        return {"contact_id": str(contact.id), "added": await contacts.add_tag(self.session, contact, params.tag)}


class AddToCampaignParams(ActionParams):
    """The contact and the campaign."""

    campaign_id: ReferenceId = Field(description="Id of the campaign.")
    phone_number: PhoneNumberText = Field(description="Phone number to call.")
    name: Label | None = Field(None, description="The contact's name; null if unknown.")


class AddToCampaign(DatabaseAction[AddToCampaignParams]):
    """Add a contact to the campaign's list, unless it is there. A campaign that has ended or is full fails the
    action permanently.
    """

    name, title, Params = "add_to_campaign", "Add to a campaign", AddToCampaignParams
    scope = None

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        if "campaign_id" in params:
            _require_campaign(await session.find(Campaign, parse_id(str(params["campaign_id"]))))

    async def run(self, context: ActionContext, params: AddToCampaignParams) -> JsonObject:
        campaign = _require_campaign(await self.session.lock(Campaign, parse_id(params.campaign_id)))
        before = campaign.total_contacts
        after = await campaigns.add_contacts(
            self.session, campaign.id, [ContactToCall(phone_number=params.phone_number, name=params.name)]
        )
        return {"campaign_id": str(after.id), "added": after.total_contacts > before}


def _require_campaign(campaign: Campaign | None) -> Campaign:
    """Return the campaign. Raises `ValidationFailed`, with the same message for an unknown campaign and one of
    another organization.
    """
    if campaign is None:
        raise ValidationFailed.field("campaign_id", "is not a campaign of the organization")
    return campaign


BOOKING_PERIOD: Final = timedelta(days=14)
BOOKING_TRIES: Final = 3
"""Free times that are tried, if others take them meanwhile."""
BOOKING_PAUSE: Final = timedelta(seconds=30)


class BookFreeTimeParams(ActionParams):
    """The person who comes, and the period."""

    appointment_type_id: ReferenceId = Field(description="Id of the appointment type.")
    phone_number: PhoneNumberText = Field(description="E.164 number of the person who comes.")
    name: Annotated[str, Field(min_length=1, max_length=255)] = Field(description="Name of the person who comes.")
    earliest: GivenMoment | None = Field(None, description="Earliest beginning; without one: now.")
    latest: GivenMoment | None = Field(
        None, description="Latest beginning; without one: fourteen days after the earliest."
    )
    fields: FieldAnswers = Field(
        default_factory=dict, description="Answers to the questions of the appointment type, by their names."
    )


class BookFreeTime(OutboundAction[BookFreeTimeParams]):
    """Book the first free time of a period. Without one, or with an answer missing, the action fails permanently."""

    name, title, Params = "book_appointment", "Book an appointment", BookFreeTimeParams
    scope = "calendar:write"

    async def check_params(self, session: ReadSession, params: Mapping[str, JsonValue]) -> None:
        if "appointment_type_id" in params:
            await appointment_types.require_type(
                session, str(params["appointment_type_id"]), field="appointment_type_id"
            )

    async def run(self, context: ActionContext, params: BookFreeTimeParams) -> JsonObject:
        book, organization_id = self.services.book, context.organization_id
        # The same for every attempt: an appointment that an earlier one has booked is the result.
        appointment_id = uuid5(context.run_id, context.idempotency_key)
        async with book.database.read(organization_id) as session:
            kind = await appointment_types.require_type(
                session, params.appointment_type_id, field="appointment_type_id"
            )
            known = await session.find(Appointment, appointment_id)
        if known is not None and known.status in ("booked", "canceled"):
            return _describe_booking(known)
        earliest = max(params.earliest or now(), now())
        latest = params.latest or earliest + BOOKING_PERIOD
        try:
            found = await book.availability.find_slots(
                kind, after=earliest, until=min(latest + RESOLUTION, earliest + LONGEST_PERIOD), limit=BOOKING_TRIES
            )
            for slot in book.availability.offer(kind, found):
                person = {"phone_number": params.phone_number, "name": params.name, "fields": params.fields}
                data = AppointmentCreate.model_validate({"slot_token": slot.slot_token, **person})
                try:
                    booked = await book.book(
                        organization_id, data, appointment_id=appointment_id, origin=Origin(depth=self.depth)
                    )
                except SlotTaken:
                    continue
                return _describe_booking(booked)
        except InvalidState:
            raise ActionPostponed(now() + BOOKING_PAUSE) from None
        except ProviderFailed as error:
            raise ActionError(error.detail) from None
        raise ActionError("no time is free in the period", retryable=bool(found))


def _describe_booking(appointment: Appointment) -> JsonObject:
    return {"appointment_id": str(appointment.id), "starts_at": appointment.starts_at.isoformat()}


class WaitParams(ActionParams):
    """The pause."""

    seconds: int = Field(ge=1, le=30 * 24 * 3600, description="Seconds, 1 to 2,592,000 (thirty days).")


class Wait(AutomationAction[WaitParams]):
    """Postpone the next action without occupying a worker."""

    name, title, Params = "wait", "Wait", WaitParams
    scope = None

    async def run(self, context: ActionContext, params: WaitParams) -> JsonObject:
        until = context.began_at + timedelta(seconds=params.seconds)
        if now() < until:
            raise ActionPostponed(until)
        return {"seconds": params.seconds}
