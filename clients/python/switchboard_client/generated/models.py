"""Objects of responses and events. Generated: run `make clients` instead of editing."""

from __future__ import annotations

from datetime import date as date_aliased
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from switchboard_client.model import Model


class AgentVariable(Model):
    """
    A value that the agent learns in a conversation.
    """

    name: str
    """
    Name of the variable, each once.
    """
    description: str | None = None
    """
    Tells the model what the value is.
    """
    source: Literal["words", "keypad", "tool"] | None = None
    """
    `words`: the model notes what the caller says. `keypad`: the model lets the caller enter it, and does not see
    it. `tool`: it stands in the result of a tool.
    """
    prompt: str | None = None
    """
    With `keypad`: spoken before the entry.
    """
    max_digits: int | None = None
    """
    With `keypad`: the entry ends after so many digits, or `#`.
    """
    tool: str | None = None
    """
    With `tool`: name of the tool.
    """
    path: str | None = None
    """
    With `tool`: path of the value in the result.
    """


class AgentVersionOut(Model):
    """
    An agent as of one update.
    """

    version: int
    """
    Number of the version, from 1.
    """
    settings: dict[str, Any]
    """
    Fields of the agent as of this version, without secrets.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class AppointmentBooked(Model):
    """
    An appointment was booked, and its calendar has it.
    """

    appointment_id: str
    """
    Id of the appointment.
    """
    appointment_type_id: str
    """
    Id of the appointment type.
    """
    appointment_type: str
    """
    Name of the appointment type.
    """
    status: Literal["booked", "canceled"]
    """
    Status of the appointment when the event happened.
    """
    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    time_zone: str
    """
    IANA time zone of the appointment.
    """
    local_starts_at: AwareDatetime
    """
    The beginning in that zone, ISO 8601.
    """
    words: dict[str, str]
    """
    The beginning in words to read or to say, by language: `en`, `de`, `es`, `fr`.
    """
    phone_number: str
    """
    Phone number of the person who comes, E.164.
    """
    name: str
    """
    Name of the person who comes.
    """
    fields: dict[str, str]
    """
    Answers to the questions of the appointment type.
    """
    confirmed_at: AwareDatetime | None
    """
    When the person confirmed to come; null if they did not.
    """
    created_at: AwareDatetime
    """
    When the appointment was booked.
    """


class AppointmentBookedDelivery(Model):
    """
    Delivery of `appointment.booked`.
    """

    event: Literal["appointment.booked"]
    """
    Name of the event.
    """
    data: AppointmentBooked
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class AppointmentCanceled(Model):
    """
    An appointment was canceled.
    """

    appointment_id: str
    """
    Id of the appointment.
    """
    appointment_type_id: str
    """
    Id of the appointment type.
    """
    appointment_type: str
    """
    Name of the appointment type.
    """
    status: Literal["booked", "canceled"]
    """
    Status of the appointment when the event happened.
    """
    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    time_zone: str
    """
    IANA time zone of the appointment.
    """
    local_starts_at: AwareDatetime
    """
    The beginning in that zone, ISO 8601.
    """
    words: dict[str, str]
    """
    The beginning in words to read or to say, by language: `en`, `de`, `es`, `fr`.
    """
    phone_number: str
    """
    Phone number of the person who comes, E.164.
    """
    name: str
    """
    Name of the person who comes.
    """
    fields: dict[str, str]
    """
    Answers to the questions of the appointment type.
    """
    confirmed_at: AwareDatetime | None
    """
    When the person confirmed to come; null if they did not.
    """
    created_at: AwareDatetime
    """
    When the appointment was booked.
    """
    changed_in: Literal["switchboard", "calendar"]
    """
    `calendar`: somebody has changed the event in the calendar itself.
    """


class AppointmentCanceledDelivery(Model):
    """
    Delivery of `appointment.canceled`.
    """

    event: Literal["appointment.canceled"]
    """
    Name of the event.
    """
    data: AppointmentCanceled
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class AppointmentField(Model):
    """
    A question that is asked when an appointment is booked.
    """

    name: str
    """
    Key of the answer in `fields` of an appointment.
    """
    description: str | None = None
    """
    The question, for people and for agents.
    """
    required: bool | None = None
    """
    Whether an appointment needs the answer.
    """


class AppointmentMoved(Model):
    """
    An appointment was moved to another time.
    """

    appointment_id: str
    """
    Id of the appointment.
    """
    appointment_type_id: str
    """
    Id of the appointment type.
    """
    appointment_type: str
    """
    Name of the appointment type.
    """
    status: Literal["booked", "canceled"]
    """
    Status of the appointment when the event happened.
    """
    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    time_zone: str
    """
    IANA time zone of the appointment.
    """
    local_starts_at: AwareDatetime
    """
    The beginning in that zone, ISO 8601.
    """
    words: dict[str, str]
    """
    The beginning in words to read or to say, by language: `en`, `de`, `es`, `fr`.
    """
    phone_number: str
    """
    Phone number of the person who comes, E.164.
    """
    name: str
    """
    Name of the person who comes.
    """
    fields: dict[str, str]
    """
    Answers to the questions of the appointment type.
    """
    confirmed_at: AwareDatetime | None
    """
    When the person confirmed to come; null if they did not.
    """
    created_at: AwareDatetime
    """
    When the appointment was booked.
    """
    previous_starts_at: AwareDatetime
    """
    Beginning of the appointment before it was moved.
    """
    changed_in: Literal["switchboard", "calendar"]
    """
    `calendar`: somebody has changed the event in the calendar itself.
    """


class AppointmentMovedDelivery(Model):
    """
    Delivery of `appointment.moved`.
    """

    event: Literal["appointment.moved"]
    """
    Name of the event.
    """
    data: AppointmentMoved
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class AppointmentOut(Model):
    """
    An appointment.
    """

    id: str
    """
    Id of the appointment.
    """
    appointment_type_id: str
    """
    Id of the appointment type.
    """
    status: Literal["pending", "booked", "canceled", "failed"]
    """
    `pending` while the calendar is asked; `failed` if it did not confirm the appointment.
    """
    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    time_zone: str
    """
    IANA time zone of the appointment.
    """
    phone_number: str
    """
    E.164 number of the person who comes.
    """
    name: str
    """
    Name of the person who comes.
    """
    fields: dict[str, str]
    """
    Answers to the questions of the appointment type.
    """
    call_id: str | None
    """
    Id of the call in which it was booked, which may be deleted by now; null: not in a call.
    """
    is_confirmed: bool
    """
    Whether the person has confirmed to come; a move takes it back.
    """
    confirmed_at: AwareDatetime | None
    """
    Time of the confirmation; null without one.
    """
    canceled_at: AwareDatetime | None
    """
    Time of the cancellation; null without one.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class AppointmentReminder(Model):
    """
    An appointment is coming: a reminder of its type is due.
    """

    appointment_id: str
    """
    Id of the appointment.
    """
    appointment_type_id: str
    """
    Id of the appointment type.
    """
    appointment_type: str
    """
    Name of the appointment type.
    """
    status: Literal["booked", "canceled"]
    """
    Status of the appointment when the event happened.
    """
    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    time_zone: str
    """
    IANA time zone of the appointment.
    """
    local_starts_at: AwareDatetime
    """
    The beginning in that zone, ISO 8601.
    """
    words: dict[str, str]
    """
    The beginning in words to read or to say, by language: `en`, `de`, `es`, `fr`.
    """
    phone_number: str
    """
    Phone number of the person who comes, E.164.
    """
    name: str
    """
    Name of the person who comes.
    """
    fields: dict[str, str]
    """
    Answers to the questions of the appointment type.
    """
    confirmed_at: AwareDatetime | None
    """
    When the person confirmed to come; null if they did not.
    """
    created_at: AwareDatetime
    """
    When the appointment was booked.
    """
    minutes_before: int
    """
    Minutes before the appointment at which the reminder is due. It is published then, or later, when the
    organization's calling hours begin at the person's phone number.
    """


class AppointmentReminderDelivery(Model):
    """
    Delivery of `appointment.reminder`.
    """

    event: Literal["appointment.reminder"]
    """
    Name of the event.
    """
    data: AppointmentReminder
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class AttemptOut(Model):
    """
    One request of a delivery. Of the receiver's response only the status is stored.
    """

    number: int
    """
    Number of the attempt, from 1.
    """
    started_at: AwareDatetime
    """
    Time of the request.
    """
    duration_ms: int
    """
    Milliseconds to the response or the failure.
    """
    status_code: int | None
    """
    HTTP status of the response; null without one.
    """
    error: str | None
    """
    Null for a success.
    """


class AttemptsOut(Model):
    """
    A delivery's attempts, in order.
    """

    items: list[AttemptOut]
    """
    Attempts, oldest first.
    """


class BalanceOut(Model):
    """
    An organization's balance.
    """

    balance: float
    """
    US dollars; negative if more was used than paid.
    """
    currency: Literal["USD"] | None = None
    """
    Always `USD`.
    """
    billing_mode: Literal["prepaid", "postpaid"]
    """
    `prepaid` organizations need a balance to place calls and send text messages.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class BannedTopic(Model):
    """
    A subject that the agent does not talk about.
    """

    name: str
    """
    Subject, for the model.
    """
    keywords: list[str] | None = None
    """
    Words of sentences that may be about it, about which a model is asked; empty: the name. Other sentences are
    not delayed.
    """


class BrowserTokenOut(Model):
    """
    Credentials for calls from a browser or an app.
    """

    token: str
    """
    Token for the carrier's client SDK.
    """
    provider: str
    """
    Name of the carrier's provider.
    """
    platform: Literal["web", "ios", "android"]
    """
    Platform of the client.
    """
    identity: str
    """
    The client's identity at the carrier.
    """
    expires_at: AwareDatetime
    """
    Time from which the token is refused.
    """
    connection: dict[str, str]
    """
    Further settings of the SDK.
    """


class CalendarDisconnected(Model):
    """
    A calendar refuses its account, and takes no appointments until it is connected again.
    """

    calendar_id: str
    """
    Id of the calendar.
    """
    name: str
    """
    Name of the calendar.
    """
    provider: str
    """
    Provider of the calendar.
    """
    error_message: str
    """
    Reason why the calendar refuses the account.
    """
    disconnected_at: AwareDatetime
    """
    When the account was refused.
    """


class CalendarDisconnectedDelivery(Model):
    """
    Delivery of `calendar.disconnected`.
    """

    event: Literal["calendar.disconnected"]
    """
    Name of the event.
    """
    data: CalendarDisconnected
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallIntervention(Model):
    """
    Something that an agent was kept from saying, or words of the other side that met a guardrail.
    """

    rule: Literal["claim", "phrase", "topic", "override", "off_subject", "content"]
    """
    Kind of rule: `claim`, `phrase`, and `topic` are for the agent's words, others for the caller's.
    """
    name: str
    """
    Name of the claim, the topic, or the guardrail, or the phrase.
    """
    action: Literal["held_back", "ignore", "answer", "person", "end"]
    """
    `held_back`: the agent did not say it; otherwise the guardrail's action.
    """
    agent_id: str
    """
    Id of the agent.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class CallQualityOut(Model):
    """
    Quality of a call's line, as the carrier measured it on what the other party sent.
    """

    loss_share: float
    """
    Share of lost packets, from 0 to 1.
    """
    jitter_ms: float
    """
    Jitter in milliseconds (RFC 3550).
    """
    mos: float
    """
    Estimated mean opinion score, from 1 to 5 (ITU-T G.107).
    """


class CallVariable(Model):
    """
    Variable that an agent learned in a call.
    """

    value: str
    """
    Value, redacted.
    """
    origin: Literal["words", "keypad", "tool"]
    """
    `words`: what was said, as the model understood it; `keypad`; `tool`: the result of a tool.
    """
    agent_id: str
    """
    Id of the agent that learned it.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class CallerIdOut(Model):
    """
    A phone number that can be called from.
    """

    id: str
    """
    Id of the phone number.
    """
    phone_number: str
    """
    E.164 number.
    """
    friendly_name: str
    """
    Name for people.
    """


class CallerIds(Model):
    """
    The phone numbers that can be called from.
    """

    items: list[CallerIdOut]
    """
    Phone numbers that can be called from.
    """


class CampaignContactOut(Model):
    """
    A contact of a campaign. `outcome` is that of the last call, also while a retry is pending.
    """

    id: str
    """
    Id of the contact within the campaign.
    """
    campaign_id: str
    """
    Id of the campaign.
    """
    phone_number: str
    """
    E.164 number.
    """
    name: str | None
    """
    Name of the person.
    """
    status: Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"]
    """
    `completed`: the call was answered. `skipped`: may not be called, or is listed twice.
    """
    outcome: (
        Literal["answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled"]
        | None
    )
    """
    Outcome of the last call; null before the first one ends.
    """
    call_id: str | None
    """
    Id of the last call; null before the first one.
    """
    error: str | None
    """
    Reason for `failed` or `skipped`, in words.
    """
    attempts: int
    """
    Number of times the contact was dialed; an addition.
    """
    called_at: AwareDatetime | None
    """
    Time of the last call; null before the first one.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class Capabilities(Model):
    """
    Capabilities of a phone number.
    """

    voice: bool
    """
    Takes and places calls.
    """
    sms: bool
    """
    Sends and receives text messages.
    """
    mms: bool
    """
    Sends and receives media messages.
    """


class Claim(Model):
    """
    A statement that the agent makes only if a tool has returned success in the conversation.
    """

    name: str
    """
    `booked`, `rescheduled`, `canceled`, `transferred`, `message_sent`, `opted_out`, and `refunded` are found
    without `phrases`, in English, German, Spanish, and French. `price` and `opening_hours`: the figure must stand
    in what the agent was given. Other names need `phrases`.
    """
    phrases: list[str] | None = None
    """
    Phrases that make the claim, in any letter case.
    """
    tools: list[str] | None = None
    """
    Tools one of which must have returned success, besides the built-in ones of the claim. With none the agent
    never makes the claim.
    """


class ConsentOut(Model):
    """
    Notice and consent at the beginning of a call. Milliseconds count from the start of the call's audio.
    """

    rules: list[str]
    """
    Rules that applied, of the organization and of the agent.
    """
    place: str | None
    """
    Country or region of the other party's number.
    """
    mode: Literal["none", "notice", "ask"]
    """
    Strictest mode of the rules.
    """
    notice: str
    """
    Sentences that were spoken.
    """
    asked_at: AwareDatetime
    """
    Time of the notice or the question.
    """
    asked_ms: int
    """
    Milliseconds to the notice or the question.
    """
    answer: bool | None
    """
    Null if only a notice was due, or the other party hung up before.
    """
    by: Literal["speech", "keypad", "stayed"] | None
    """
    Kind of answer: words, a key, or staying on the line after a notice.
    """
    heard: str | None
    """
    Words or key of the answer; deleted with the transcript.
    """
    answered_at: AwareDatetime | None
    """
    Time of the answer.
    """
    answered_ms: int | None
    """
    Milliseconds to the answer.
    """
    recording_offset_ms: int | None
    """
    Moment from which the recording has the other party's voice; null if it has none, or has it from the
    beginning.
    """


class ContactOut(Model):
    """
    A contact.
    """

    id: str
    """
    Id of the contact.
    """
    phone_number: str
    """
    E.164 number, which only one contact of the organization has.
    """
    name: str | None
    """
    Name of the person.
    """
    email: str | None
    """
    Email address, as given.
    """
    company: str | None
    """
    Name of the company.
    """
    notes: str | None
    """
    Free text, at most 10 000 characters.
    """
    tags: str | None
    """
    Free text; the separator of tags is yours to choose.
    """
    address: str | None
    """
    Postal address, as given.
    """
    role: str | None
    """
    Job or part of the person, such as `buyer`.
    """
    is_favorite: bool
    """
    A mark of your own; it changes nothing else.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class DayOut(Model):
    """
    Figures of one day.
    """

    date: date_aliased
    """
    The day.
    """
    total: int
    """
    All calls of the day.
    """
    completed: int
    """
    Calls with the status `completed`.
    """
    failed: int
    """
    Calls that ended with another status.
    """
    inbound: int
    """
    Calls that others placed.
    """
    outbound: int
    """
    Calls that the platform placed.
    """
    minutes: float
    """
    Minutes of all calls.
    """
    cost: float
    """
    US dollars of all calls.
    """


class DaysOut(Model):
    """
    Every day of the period, oldest first, including days without calls.
    """

    items: list[DayOut]
    """
    Days, oldest first.
    """


class DisclosureRule(Model):
    """
    Notice and consent at the beginning of a call.
    """

    ai_notice: bool | None = None
    """
    Say that an AI is speaking.
    """
    consent: Literal["none", "notice", "ask"] | None = None
    """
    `none`: the call is recorded. `notice`: say so; who stays on the line consents. `ask`: record only after a
    yes, by voice or key.
    """


class DoNotCallOut(Model):
    """
    An entry of the do-not-call list.
    """

    id: str
    """
    Id of the entry.
    """
    phone_number: str
    """
    E.164 number that is neither called nor texted.
    """
    source: Literal["api", "text", "call"]
    """
    Channel of the request: the API, a text message, or a call.
    """
    note: str
    """
    Free text for people.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class DocumentOut(Model):
    """
    A document of a knowledge base.
    """

    id: str
    """
    Id of the document.
    """
    knowledge_base_id: str
    """
    Id of the knowledge base.
    """
    filename: str
    """
    Name of the file; its extension says the type if `content_type` does not.
    """
    content_type: str
    """
    `text/plain`, `text/markdown`, `text/html`, `text/csv`, `application/json`, `application/pdf` or
    `application/vnd.openxmlformats-officedocument.wordprocessingml.document`. Defaults to the extension's type.
    """
    file_size: int
    """
    Size in bytes; of a PDF or DOCX, the size of the file.
    """
    chunk_count: int
    """
    Number of passages.
    """
    status: Literal["processing", "ready", "failed"]
    """
    `processing` becomes `ready` (it is found) or `failed`.
    """
    error_message: str | None
    """
    Reason for `failed`, in words.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class DraftOut(Model):
    """
    An agent's draft.
    """

    agent_id: str
    """
    Id of the agent.
    """
    revision: str
    """
    Changes whenever the draft is saved with other changes.
    """
    base_version: int
    """
    Version of the agent that the draft changes.
    """
    is_outdated: bool
    """
    Other settings were published since; save the draft again to publish it on top of them.
    """
    changes: dict[str, Any]
    """
    Fields of the agent that differ from the published ones.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class Ended(Model):
    """
    This side ends the conversation.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["ended_by"]
    """
    Kind of assertion.
    """
    by: Literal["agent", "caller", "transfer", "limit"]
    """
    Side that ends the conversation; `limit` is `max_turns`.
    """


class EndpointCreated(Model):
    """
    A webhook endpoint with its signing secret, which is shown only once.
    """

    id: str
    """
    Id of the endpoint.
    """
    url: str
    """
    A public address; https is strongly recommended.
    """
    description: str | None
    """
    Free text for people.
    """
    events: list[str]
    """
    Empty: every event.
    """
    enabled: bool
    """
    False: events make no new deliveries, and pending ones wait.
    """
    has_secret: bool
    """
    True if requests are signed.
    """
    consecutive_failures: int
    """
    Deliveries that ended `failed` since the last success; the 20th disables the endpoint.
    """
    previous_secret_expires_at: AwareDatetime | None
    """
    Time until which the previous secret signs too; null if there is none.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """
    secret: str
    """
    Secret that signs the requests.
    """


class EndpointOut(Model):
    """
    A webhook endpoint.
    """

    id: str
    """
    Id of the endpoint.
    """
    url: str
    """
    Pending deliveries go to the new address.
    """
    description: str | None
    """
    Free text for people.
    """
    events: list[str]
    """
    Empty: every event.
    """
    enabled: bool
    """
    False: events make no new deliveries, and pending ones wait.
    """
    has_secret: bool
    """
    True if requests are signed.
    """
    consecutive_failures: int
    """
    Deliveries that ended `failed` since the last success; the 20th disables the endpoint.
    """
    previous_secret_expires_at: AwareDatetime | None
    """
    Time until which the previous secret signs too; null if there is none.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class EventOut(Model):
    """
    An event that endpoints can subscribe to.
    """

    name: str
    """
    Name of the event, such as `call.completed`.
    """
    description: str
    """
    Occasion of the event.
    """


class EventsOut(Model):
    """
    Every event.
    """

    items: list[EventOut]
    """
    Every event that endpoints can subscribe to.
    """


class ExportLinkOut(Model):
    """
    Link to the file of an export that needs no credential until it expires.
    """

    url: str
    """
    Address of the file.
    """
    expires_at: AwareDatetime
    """
    Time from which the address is refused.
    """


class ExtractedField(Model):
    """
    A value to extract from a call.
    """

    type: Literal["string", "number", "integer", "boolean"]
    """
    JSON type of the value.
    """
    description: str | None = None
    """
    Description of the value for the analysis.
    """
    enum: list[str] | None = None
    """
    The only texts allowed.
    """


class ExtractionSchema(Model):
    """
    The values that the analysis after a call extracts, as a JSON schema: an object of plain values.
    """

    type: Literal["object"] | None = None
    """
    Always `object`.
    """
    properties: dict[str, ExtractedField]
    """
    Values to extract, by their name in `extracted_data`.
    """
    required: list[str] | None = None
    """
    Names of the values that must not be missing.
    """


class Guardrail(Model):
    """
    Words of the other side that the agent does not simply answer.
    """

    name: str
    """
    Name in records, each once.
    """
    watches: Literal["override", "off_subject", "content"]
    """
    `override`: attempts to change, get around, or reveal the agent's instructions. `off_subject`: requests that
    have nothing to do with `description`. `content`: what `description` names.
    """
    description: str | None = None
    """
    The agent's subject for `off_subject`, and a category for `content`, for the model that judges.
    """
    action: Literal["ignore", "answer", "person", "end"] | None = None
    """
    `ignore`: the model is told not to act on the words, and goes on. `answer`: the agent says `text` instead of
    its answer. `person`: the caller waits for a person, as with `ask_for_person`. `end`: the agent says `text`
    and ends the call.
    """
    text: str | None = None
    """
    Said with `answer`, where it is needed, and before `person` and `end`.
    """


class HandoffOut(Model):
    """
    Hand-off of a call from one agent to another.
    """

    from_agent_id: str
    """
    Id of the agent that had the call.
    """
    to_agent_id: str
    """
    Id of the agent that got the call.
    """
    to_agent_version: int
    """
    Version of that agent.
    """
    mode: Literal["replace", "call_and_return", "return"]
    """
    Mode of the hand-off; `return`: a specialist came back.
    """
    forced: bool
    """
    True if a condition handed the call over, and not the model.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class IntegrationOut(Model):
    """
    The integration without its secrets.
    """

    has_partner_api_key: bool
    """
    True if an API key of the partner is stored.
    """
    webhook_url: str | None
    """
    Receives every event of the organization.
    """
    has_webhook_secret: bool
    """
    True if requests to the webhook are signed.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class InterventionOut(Model):
    """
    Something that an agent was kept from saying, or words of the other side that met a guardrail. The transcript
    has the words.
    """

    rule: Literal["claim", "phrase", "topic", "override", "off_subject", "content"]
    """
    Kind of rule: `claim`, `phrase`, and `topic` are for the agent's words, others for the caller's.
    """
    name: str
    """
    Name of the claim, the topic, or the guardrail, or the phrase.
    """
    action: Literal["held_back", "ignore", "answer", "person", "end"]
    """
    `held_back`: the agent did not say it; otherwise the guardrail's action.
    """
    agent_id: str
    """
    Id of the agent.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class Judged(Model):
    """
    The agent's model reads the transcript and judges whether the statement holds.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["judge"]
    """
    Kind of assertion.
    """
    question: str
    """
    Statement or question about the transcript; yes passes.
    """


class KeypadArgument(Model):
    """
    An argument of a tool that the caller enters on the phone's keypad. The model does not see it.
    """

    parameter: str
    """
    Name of a property of `parameters`.
    """
    prompt: str | None = None
    """
    Spoken before the entry.
    """
    max_digits: int | None = None
    """
    The entry ends after so many digits, or with `#`.
    """


class KnowledgeBaseOut(Model):
    """
    A knowledge base.
    """

    id: str
    """
    Id of the knowledge base.
    """
    name: str
    """
    Name for people.
    """
    description: str
    """
    Free text for people.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class LatencyUnder(Model):
    """
    Each answer of the agent starts within the limit. Mode `audio` only.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["latency_under_ms"]
    """
    Kind of assertion.
    """
    milliseconds: int
    """
    From the caller's last sound to the agent's first.
    """


class MediaLinkOut(Model):
    """
    Link to a file of a received message that needs no credential until it expires.
    """

    url: str
    """
    Address of the file.
    """
    expires_at: AwareDatetime
    """
    Time from which the address is refused.
    """
    content_type: str
    """
    Content type of the file, such as `image/jpeg`.
    """


class MessageIntervention(Model):
    """
    Something that an agent was kept from writing, or words of the contact that met a guardrail.
    """

    rule: Literal["claim", "phrase", "topic", "override", "off_subject", "content"]
    """
    Kind of rule: `claim`, `phrase`, and `topic` are about the agent's words, the others about the contact's.
    """
    name: str
    """
    Name of the claim, the topic, or the guardrail, or the phrase.
    """
    action: Literal["held_back", "ignore", "answer", "person", "end"]
    """
    `held_back`: the agent did not write it; otherwise the guardrail's action.
    """


class NeededVariable(Model):
    """
    A variable without which a tool does not run.
    """

    name: str
    """
    Name of the variable.
    """
    least_origin: Literal["words", "keypad", "carrier", "crm", "metadata", "tool"] | None = None
    """
    The least trusted origin that counts: `words`, `keypad`, `carrier`, `crm`, `metadata`, or `tool`, in this
    order.
    """


class NeverSaid(Model):
    """
    The agent does not say the text in any turn.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["never_said"]
    """
    Kind of assertion.
    """
    text: str
    """
    Consecutive words in any letter case; `*` matches anything.
    """


class PassageOut(Model):
    """
    A matching passage. Scores of different searches cannot be compared.
    """

    document_id: str
    """
    Id of the document.
    """
    knowledge_base_id: str
    """
    Id of the knowledge base.
    """
    filename: str
    """
    Name of the document's file.
    """
    chunk_index: int
    """
    Position of the passage in the document, from 0.
    """
    content: str
    """
    Text of the passage.
    """
    score: float
    """
    Similarity to the query; higher is better.
    """


class PassagesOut(Model):
    """
    Matching passages, best first.
    """

    items: list[PassageOut]
    """
    Passages, best first.
    """


class PauseOut(Model):
    """
    Pause of the caller within a turn or at its end, and the judgment about it.
    """

    after_ms: int
    """
    Milliseconds from the beginning of the entry to the beginning of the pause.
    """
    waited_ms: int
    """
    Milliseconds from the caller's last voice to the end of the turn, or until the caller went on.
    """
    ended_turn: bool
    """
    True if the pause ended the turn.
    """
    detector: str | None
    """
    `silence` if the agent judges no turns, `words`, or the name of a turn detector; null if the words left doubt
    and no detector answered.
    """
    probability: float | None
    """
    Judged probability from 0 to 1 that the turn was complete.
    """


class Period(Model):
    """
    First and last day of a period.
    """

    from_: date_aliased = Field(..., alias="from")
    """
    First day.
    """
    to: date_aliased
    """
    Last day.
    """
    days: int
    """
    Number of days.
    """


class PhoneNumberOut(Model):
    """
    A phone number.
    """

    id: str
    """
    Id of the phone number.
    """
    phone_number: str
    """
    E.164 number.
    """
    friendly_name: str
    """
    Name for people; null: the number.
    """
    inbound_agent_id: str | None
    """
    Id of the agent that answers calls and text messages; null: nobody.
    """
    status: Literal["provisioning", "active", "pending_release", "released", "failed"]
    """
    `provisioning` becomes `active` or `failed`; `pending_release` works until `release_at`.
    """
    schedule: dict[str, Any] | None
    """
    Opening hours for calls; null: always open.
    """
    sms_schedule: dict[str, Any] | None
    """
    Hours in which the agent answers text messages; null: always.
    """
    forward_number: str | None
    """
    E.164 number to which the schedule forwards calls, or `client:` and the name of a client, which is an
    addition.
    """
    forward_webhook_url: str | None
    """
    Address that the schedule asks what to do with a call.
    """
    sms_active: bool
    """
    True if the number can send and receive text messages.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    release_at: AwareDatetime | None = None
    """
    When a number with a scheduled release is released; an addition.
    """
    forward_webhook_secret: str | None = None
    """
    Signs requests to `forward_webhook_url` like webhooks; shown once, in the response that set another URL. An
    addition.
    """


class PrivacyReport(Model):
    """
    Rows of a request by table.
    """

    exported: dict[str, int] | None = None
    """
    Rows, and recordings, in the file of an export.
    """
    deleted: dict[str, int] | None = None
    """
    Deleted rows.
    """
    redacted: dict[str, int] | None = None
    """
    Rows in which the number became `[erased]`.
    """
    waiting: dict[str, int] | None = None
    """
    Rows that are still in use, such as a live call. They are erased once that is over.
    """
    is_on_do_not_call_list: bool | None = None
    """
    The list keeps a digest of the number.
    """


class PrivacyRequestOut(Model):
    """
    A person's request.
    """

    id: str
    """
    Id of the request.
    """
    kind: Literal["export", "erase"]
    """
    A copy of the person's data, or its deletion for good.
    """
    status: Literal["queued", "running", "completed", "failed"]
    """
    `completed` and `failed` are final.
    """
    phone_number: str | None
    """
    Null once the number is erased.
    """
    report: PrivacyReport
    """
    What was found and done, so far.
    """
    error_message: str | None
    """
    Reason for `failed`, in words.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    completed_at: AwareDatetime | None
    """
    Time of the end; null before it.
    """
    file_expires_at: AwareDatetime | None
    """
    When the file of an export is deleted; null without a file.
    """


class ProviderFailureOut(Model):
    """
    Failures of one provider during a call. `plugin` is the distribution that provides it and its version, and
    `error` the last failure.
    """

    capability: str
    """
    Capability that failed, such as `llm`.
    """
    provider: str
    """
    Name of the provider.
    """
    plugin: str
    """
    Distribution of the provider, with its version.
    """
    error: str
    """
    Last failure, in words.
    """
    count: int
    """
    Number of failures during the call.
    """


class RecordingLinkOut(Model):
    """
    Link to a call's recording that needs no credential until it expires.
    """

    url: str
    """
    Address of the recording.
    """
    expires_at: AwareDatetime
    """
    Time from which the address is refused.
    """
    content_type: str | None
    """
    `audio/flac`, `audio/ogg` (Opus), or `audio/wav`, as the recording is stored; null if the carrier stores it.
    """


class Redaction(Model):
    """
    Private data of an agent's conversations that is replaced before it is kept or sent.
    """

    kinds: list[str]
    """
    Kinds to redact: `card_number`, `iban`, `national_id`, `pin`, `phone_number`, `email_address`, `keypad`, and
    those of plugins. Empty: nothing, whatever the organization's default is.
    """
    visible_to_model: list[str] | None = None
    """
    Those of the kinds that the agent's model sees during a call, because it needs them.
    """


class ReplayOut(Model):
    """
    Result of a replay.
    """

    replayed: int
    """
    Deliveries that were created, at most 1000.
    """
    has_more: bool
    """
    Whether failed deliveries are left: repeat the request.
    """


class Retry(Model):
    """
    Retries of a contact; an addition to the specification.
    """

    attempts: int
    """
    Number of retries after the first call.
    """
    delay_seconds: int | None = None
    """
    Seconds between a call and the next one.
    """
    on: list[Literal["busy", "no-answer", "voicemail"]] | None = None
    """
    Outcomes after which the contact is called again.
    """


class RotatedSecret(Model):
    """
    The new secret, which is shown only once.
    """

    secret: str
    """
    Secret that signs the requests from now on.
    """
    previous_secret_expires_at: AwareDatetime | None
    """
    When the previous secret stops signing; null if it already has.
    """


class Said(Model):
    """
    The agent says the text in one turn.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["said"]
    """
    Kind of assertion.
    """
    text: str
    """
    Consecutive words in any letter case; `*` matches anything.
    """


class Sentiment(Model):
    """
    Number of calls by the caller's sentiment.
    """

    positive: int
    """
    Calls of satisfied parties.
    """
    neutral: int
    """
    Calls of neutral parties.
    """
    negative: int
    """
    Calls of dissatisfied parties.
    """
    unknown: int
    """
    Calls without a judgment.
    """


class SimulationCriterion(Model):
    """
    Result of one assertion of a simulation.
    """

    name: str
    """
    Name of the assertion.
    """
    passed: bool
    """
    Whether the assertion holds.
    """
    explanation: str
    """
    Reason for the result, in words.
    """


class Slot(Model):
    """
    Opening hours on some days; if `end` is not after `start`, they end on the next day.
    """

    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
    """
    Days on which the hours begin.
    """
    start: str
    """
    Local time, `HH:MM`.
    """
    end: str
    """
    Local time, `HH:MM`.
    """


class SlotOut(Model):
    """
    A free time for an appointment.
    """

    starts_at: AwareDatetime
    """
    Beginning of the appointment.
    """
    ends_at: AwareDatetime
    """
    End of the appointment.
    """
    local_starts_at: AwareDatetime
    """
    The beginning in the requested time zone, ISO 8601.
    """
    slot_token: str
    """
    Books this time; valid for 30 minutes, and no promise that it stays free.
    """


class SmsConversationOut(Model):
    """
    All messages between one of the organization's phone numbers and one contact.
    """

    id: str
    """
    Id of the conversation.
    """
    phone_number_id: str
    """
    Id of the organization's phone number.
    """
    contact_number: str
    """
    E.164 number of the contact.
    """
    status: Literal["open", "closed"]
    """
    `closed`: the contact has sent STOP.
    """
    last_message_at: AwareDatetime
    """
    Time of the latest message.
    """
    assigned_to: str | None
    """
    Id of the member who answers in the agent's place; null if the agent does; an addition.
    """
    resolved_at: AwareDatetime | None
    """
    When the conversation was resolved; null once the contact writes again; an addition.
    """
    waiting_since: AwareDatetime | None
    """
    Since when a message of the contact waits for a person, because no agent answers; an addition.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    resolved: bool
    """
    Whether the conversation is resolved; an addition.
    """
    unread_count: int | None
    """
    Messages that the user of the access token has not read; null for an API key; an addition.
    """


class SmsMessageOut(Model):
    """
    A text message.
    """

    id: str
    """
    Id of the text message.
    """
    conversation_id: str
    """
    Id of the conversation.
    """
    direction: Literal["inbound", "outbound"]
    """
    `inbound`: from the contact. `outbound`: to the contact.
    """
    from_number: str
    """
    E.164 number of the sender.
    """
    to_number: str
    """
    E.164 number of the recipient.
    """
    body: str
    """
    Text of the message.
    """
    status: Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]
    """
    State of the delivery; an inbound message is `received`.
    """
    segments: int
    """
    Number of segments that carriers bill; an addition.
    """
    cost: float
    """
    Cost of the segments, once the carrier has accepted the message, and of the model that wrote it; an addition.
    """
    author: Literal["contact", "api", "agent", "automation", "person", "platform"]
    """
    `platform` wrote the replies to STOP, START, and HELP; an addition.
    """
    agent_id: str | None
    """
    Id of the agent that wrote it, also of one that was deleted since; null for another author. An addition.
    """
    interventions: list[MessageIntervention]
    """
    What the agent was kept from writing, and the guardrail that the contact's words met; an addition.
    """
    media_urls: list[str]
    """
    Addresses of the files that the message has; an addition.
    """
    error_message: str | None
    """
    Why it failed or was not delivered; an addition.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class SmsReceived(Model):
    """
    An inbound SMS was received.
    """

    message_id: str
    """
    Id of the text message.
    """
    conversation_id: str
    """
    Id of the conversation that the message belongs to.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the message, as the organization sees it.
    """
    from_number: str
    """
    Phone number of the sender, E.164.
    """
    to_number: str
    """
    Phone number of the recipient, E.164.
    """
    body: str
    """
    Text of the message.
    """
    media_urls: list[str]
    """
    Addresses of the files that the message has.
    """
    status: Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]
    """
    Status of the message when the event happened.
    """
    contact_name: str | None
    """
    Name of the contact with the other party's phone number.
    """
    created_at: AwareDatetime
    """
    When the message was created.
    """


class SmsReceivedDelivery(Model):
    """
    Delivery of `sms.received`.
    """

    event: Literal["sms.received"]
    """
    Name of the event.
    """
    data: SmsReceived
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class SmsSent(Model):
    """
    An outbound SMS was sent: the carrier has accepted it.
    """

    message_id: str
    """
    Id of the text message.
    """
    conversation_id: str
    """
    Id of the conversation that the message belongs to.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the message, as the organization sees it.
    """
    from_number: str
    """
    Phone number of the sender, E.164.
    """
    to_number: str
    """
    Phone number of the recipient, E.164.
    """
    body: str
    """
    Text of the message.
    """
    media_urls: list[str]
    """
    Addresses of the files that the message has.
    """
    status: Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]
    """
    Status of the message when the event happened.
    """
    contact_name: str | None
    """
    Name of the contact with the other party's phone number.
    """
    created_at: AwareDatetime
    """
    When the message was created.
    """


class SmsSentDelivery(Model):
    """
    Delivery of `sms.sent`.
    """

    event: Literal["sms.sent"]
    """
    Name of the event.
    """
    data: SmsSent
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class SpecialHours(Model):
    """
    Hours of one day; if `end` is not after `start`, they end on the next day.
    """

    start: str
    """
    Local time, `HH:MM`.
    """
    end: str
    """
    Local time, `HH:MM`.
    """


class SpokenOut(Model):
    """
    An utterance or a tool call (`content` is JSON: `tool`, `result`, and in mode `text` also `arguments`).
    """

    role: Literal["user", "agent", "tool", "system"]
    """
    `user` is the simulated caller.
    """
    content: str
    """
    The words, or the tool call as JSON.
    """


class SpokenTexts(Model):
    """
    Sentences of the organization; null: the standard one in the agent's language.
    """

    ai_notice: str | None = None
    """
    Says that an AI is speaking.
    """
    recording_notice: str | None = None
    """
    Says that the call is recorded.
    """
    question: str | None = None
    """
    Names both ways to answer: yes and no, or keys 1 and 2.
    """
    unclear: str | None = None
    """
    Spoken before the question is repeated.
    """
    refused: str | None = None
    """
    Spoken without consent, if the call goes on.
    """
    goodbye: str | None = None
    """
    Spoken without consent, if the call ends.
    """


class ToolCalled(Model):
    """
    The agent calls a tool. Mode `text` can check its `arguments` too.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["tool_called"]
    """
    Kind of assertion.
    """
    tool: str
    """
    Name of the tool.
    """
    arguments: dict[str, Any] | None = None
    """
    Required arguments; others are allowed.
    """


class TranscriptEntryOut(Model):
    """
    Utterance, tool call, or event of a call. Milliseconds count from the start of the call's audio.
    """

    role: Literal["user", "agent", "tool", "system"]
    """
    `user`: the other party. `tool`: a tool call. `system`: an event, such as a transfer.
    """
    content: str
    """
    The words; of a tool call JSON, of an event a sentence.
    """
    timestamp_ms: int
    """
    Milliseconds to the beginning of the entry.
    """
    by_person: bool
    """
    True if a user who had taken the call over said it in the agent's place; an addition.
    """
    person: str | None
    """
    Name of the user who spoke in the agent's place, whispered, took the call over, or handed it back; an
    addition.
    """
    backchannel: bool
    """
    True if the caller said it while the agent spoke, and it did not stop the agent; an addition.
    """
    agent_id: str | None
    """
    Id of the agent that spoke or used the tool; an addition.
    """
    pauses: list[PauseOut]
    """
    Pauses of a turn of the caller; an addition.
    """


class TurnDetection(Model):
    """
    Rules by which a caller who pauses has finished.
    """

    mode: Literal["silence", "text", "audio", "auto"] | None = None
    """
    `silence`: every pause of `min_silence_seconds` ends the turn. `text`: unless the words are incomplete.
    `audio`: unless the organization's turn detector judges it incomplete. `auto`: by the words, and by the turn
    detector where they leave doubt.
    """
    min_silence_seconds: float | None = None
    """
    Shortest pause that ends a turn.
    """
    max_silence_seconds: float | None = None
    """
    Pause that ends an incomplete turn, too.
    """


class TurnLatencyOut(Model):
    """
    Milliseconds from the caller's last voiced audio to each step of a turn; null if a step was not reached.
    """

    turn: int
    """
    Number of the turn, from 1.
    """
    endpoint_ms: int | None
    """
    End of the turn, as judged.
    """
    transcript_ms: int | None
    """
    Final transcript.
    """
    first_token_ms: int | None
    """
    First token of the model.
    """
    first_audio_ms: int | None
    """
    First audio of the voice.
    """
    first_frame_ms: int | None
    """
    First audio sent to the carrier.
    """


class UsageOut(Model):
    """
    A month's totals, in the organization's time zone.
    """

    period: str
    """
    Month, `YYYY-MM`.
    """
    call_minutes: float
    """
    Minutes of all calls.
    """
    calls: int
    """
    Number of calls.
    """
    sms_sent: int
    """
    Number of text messages sent.
    """
    sms_received: int
    """
    Number of text messages received.
    """
    cost: float
    """
    US dollars of calls and text messages.
    """


class VariableOut(Model):
    """
    Variable that an agent learned in a call.
    """

    value: str
    """
    Value, redacted.
    """
    origin: Literal["words", "keypad", "carrier", "crm", "metadata", "tool"]
    """
    `words`: what was said, as the model understood it; `keypad`; `tool`: the result of a tool.
    """
    agent_id: str
    """
    Id of the agent that learned it.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class VoicemailPolicy(Model):
    """
    Policy for machines that answer outbound calls.
    """

    action: Literal["off", "hang_up", "leave_message"] | None = None
    """
    `off`: machines are not recognized, and the agent talks to them. `hang_up`: the call ends. `leave_message`:
    the agent is silent until the greeting is over, says the message, and hangs up.
    """
    message: str | None = None
    """
    Spoken after the beep; `{{name}}` is replaced by a value of `metadata`.
    """
    prompt: str | None = None
    """
    Instructions by which the model writes the message, instead of `message`.
    """
    carrier_detection: bool | None = None
    """
    The carrier recognizes machines, which most bill for each call. Otherwise, and where a carrier cannot, the
    platform judges the audio.
    """


class WidgetOut(Model):
    """
    A widget.
    """

    id: str
    """
    Id of the widget.
    """
    agent_id: str
    """
    Id of the agent that visitors talk to.
    """
    name: str
    """
    Name for people.
    """
    public_key: str
    """
    Key for `data-key` of the script. It names the widget, and is not a secret.
    """
    enabled: bool
    """
    False turns the widget off on every page.
    """
    demo_enabled: bool
    """
    Serve the demo page, which anybody with its address can open.
    """
    allowed_origins: list[str]
    """
    Sites that may show the widget: origins such as `https://www.example.com`, or `https://*.example.com` for
    every subdomain, but not the domain itself.
    """
    text_enabled: bool
    """
    Visitors may write.
    """
    voice_enabled: bool
    """
    Visitors may talk. Needs a carrier with calls over the platform's WebSocket.
    """
    color: str
    """
    Color of the button and of the visitor's messages.
    """
    position: Literal["left", "right"]
    """
    Corner of the page, at the bottom.
    """
    title: str | None
    """
    Title of the panel; null: the agent's name.
    """
    greeting: str | None
    """
    First message of a chat; null: the agent's greeting. Calls begin with the agent's.
    """
    language: Literal["en", "de", "es", "fr"] | None
    """
    Language of the buttons; null: the first of the visitor's browser, or else English.
    """
    max_sessions_per_minute: int
    """
    Conversations that may begin in a minute.
    """
    max_sessions_per_minute_per_address: int
    """
    Conversations that one client address may begin in a minute.
    """
    max_concurrent_sessions: int
    """
    Conversations at the same time.
    """
    max_spend_per_day: float
    """
    US dollars that the widget's conversations of the last 24 hours may cost. Beyond it no conversation begins,
    and chats are not answered; calls in progress go on.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class Action(Model):
    """
    An action and its parameters.
    """

    type: str
    """
    A built-in action or one of a plugin.
    """
    params: dict[str, Any] | None = None
    """
    Parameters of the action; texts in them are templates over the event.
    """


class ActionRunOut(Model):
    """
    The result of one action of a run.
    """

    index: int
    """
    Position among the automation's actions, from 0.
    """
    type: str
    """
    Name of the action.
    """
    status: Literal["pending", "running", "completed", "failed", "skipped"]
    """
    `skipped`: an earlier action failed, or the run was skipped.
    """
    attempts: int
    """
    Number of attempts.
    """
    error: str | None
    """
    Why it failed, or why its last attempt failed.
    """
    result: dict[str, Any] | None
    """
    Result of the action, for later actions; null until it completes.
    """
    started_at: AwareDatetime | None
    """
    Time of the first attempt.
    """
    completed_at: AwareDatetime | None
    """
    Time of the end; null while it runs or waits.
    """


class AutomationRunOut(Model):
    """
    A run of an automation for one event.
    """

    id: str
    """
    Id of the run.
    """
    automation_id: str
    """
    Id of the automation.
    """
    trigger_event: str
    """
    Name of the event that started the run.
    """
    status: Literal["running", "completed", "failed", "skipped"]
    """
    `running`, then `completed` or `failed`; `skipped` if a condition did not hold or the loop guard stopped it.
    """
    started_at: AwareDatetime
    """
    Time at which the run was recorded.
    """
    completed_at: AwareDatetime | None
    """
    Time of the end; null while it runs.
    """
    event_id: str
    """
    Id of the event; an addition.
    """
    depth: int
    """
    1, plus 1 for each automation that led to the event; above 5 the run is skipped; an addition.
    """
    error_message: str | None
    """
    Why it failed or was skipped; an addition.
    """
    actions: list[ActionRunOut]
    """
    Result of each action; an addition.
    """


class AvailabilityOut(Model):
    """
    Free times, earliest first.
    """

    items: list[SlotOut]
    """
    Free times, earliest first.
    """


class AvailableNumberOut(Model):
    """
    A phone number that can be bought.
    """

    phone_number: str
    """
    E.164 number.
    """
    friendly_name: str
    """
    The number as people write it.
    """
    country: str
    """
    ISO 3166 alpha-2 code.
    """
    region: str | None
    """
    Region, such as a state; null if the carrier does not say.
    """
    locality: str | None
    """
    City; null if the carrier does not say.
    """
    postal_code: str | None
    """
    Postal code; null if the carrier does not say.
    """
    number_type: Literal["local", "mobile", "toll_free", "national"]
    """
    Kind of number.
    """
    capabilities: Capabilities
    """
    What the number can do.
    """
    monthly_cost: float
    """
    US dollars for each month.
    """
    setup_cost: float
    """
    US dollars, once.
    """
    currency: str
    """
    Always `USD`.
    """


class AvailableNumbers(Model):
    """
    Search results.
    """

    items: list[AvailableNumberOut]
    """
    Numbers that can be bought.
    """


class CalendarOut(Model):
    """
    A connected calendar.
    """

    id: str
    """
    Id of the calendar.
    """
    provider: str
    """
    `local`, the built-in calendar, or a provider of a plugin, such as `caldav`.
    """
    name: str
    """
    Name for people.
    """
    settings: dict[str, Any]
    """
    Settings without secrets.
    """
    status: Literal["connected", "disconnected"]
    """
    `disconnected`: the provider refuses the account, and nothing is booked in the calendar.
    """
    error_message: str | None
    """
    Reason why the calendar is disconnected; null while it is not.
    """
    time_zone: str | None
    """
    IANA time zone of the calendar; null if the provider does not say.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class CallCompleted(Model):
    """
    A call ended normally.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """


class CallCompletedDelivery(Model):
    """
    Delivery of `call.completed`.
    """

    event: Literal["call.completed"]
    """
    Name of the event.
    """
    data: CallCompleted
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallFailed(Model):
    """
    A call failed to connect or errored.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """


class CallFailedDelivery(Model):
    """
    Delivery of `call.failed`.
    """

    event: Literal["call.failed"]
    """
    Name of the event.
    """
    data: CallFailed
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallHandedOff(Model):
    """
    An agent handed a live call over to another one, or back; an addition to the specification.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """
    from_agent_id: str
    """
    Id of the agent that had the call.
    """
    to_agent_id: str
    """
    Id of the agent that has the call now.
    """
    to_agent_version: int
    """
    Version of that agent.
    """
    mode: Literal["replace", "call_and_return", "return"]
    """
    Mode of the hand-off; `return`: a specialist came back.
    """
    forced: bool
    """
    True if a condition handed the call over, and not the model.
    """
    timestamp_ms: int
    """
    Milliseconds from the start of the call's audio.
    """


class CallHandedOffDelivery(Model):
    """
    Delivery of `call.handed_off`.
    """

    event: Literal["call.handed_off"]
    """
    Name of the event.
    """
    data: CallHandedOff
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallOut(Model):
    """
    A call.
    """

    id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent that the call began with, also of one that was deleted since; null for a call without an
    agent.
    """
    agent_version: int | None
    """
    Version of the agent that the call runs with; null before it is answered. An addition.
    """
    direction: Literal["inbound", "outbound"]
    """
    `inbound`: the other party called. `outbound`: the platform did.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    `queued`, `ringing`, and `in-progress` change; the others are final.
    """
    from_number: str
    """
    E.164 number of the calling party; other text if the carrier sends no number, and `widget` for a visitor of a
    website.
    """
    to_number: str
    """
    E.164 number of the called party.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end; 0 before the end, and for a chat.
    """
    cost_total: float
    """
    US dollars.
    """
    recording_url: str | None
    """
    Null until there is a recording. Fetch it with the same credential.
    """
    call_summary: str | None
    """
    Summary by the analysis after the call; null until then.
    """
    call_successful: bool | None
    """
    Judgment of the analysis; null until then, or if it cannot tell.
    """
    user_sentiment: Literal["positive", "neutral", "negative", "unknown"]
    """
    Sentiment of the other party, judged by the analysis; `unknown` until then.
    """
    extracted_data: dict[str, Any]
    """
    Values that the analysis found; empty until then.
    """
    error_message: str | None
    """
    Reason for `failed`, in words.
    """
    ended_reason: str | None
    """
    Reason why the call ended: `caller_hung_up`, `agent_hung_up`, `silence`, `max_duration`, `voicemail`,
    `transferred`, `taken_over`, `canceled`, `no_consent`, `do_not_call`, `destination_not_allowed`,
    `invalid_number`, `insufficient_balance`, `provider_failed`, `shutdown`, `error`. Later versions may add
    reasons. An addition.
    """
    transferred_to: str | None
    """
    Number, or `client:` and the name of a client, to which the call was transferred or forwarded; an addition.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created; an addition.
    """
    costs: dict[str, float]
    """
    `cost_total` by part; an addition.
    """
    agent_costs: dict[str, dict[str, float]]
    """
    Costs of each agent by its id and by part, besides the carriage; empty if there was one agent. An addition.
    """
    handoffs: list[HandoffOut]
    """
    Hand-offs between agents, in order; an addition.
    """
    interventions: list[InterventionOut]
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """
    variables: dict[str, VariableOut]
    """
    Variables that agents have learned in the call, by name; an addition.
    """
    latencies: list[TurnLatencyOut]
    """
    Latencies of each turn; an addition.
    """
    served_by: dict[str, str]
    """
    Provider of each capability that served the call, and of its `analysis`; an addition.
    """
    provider_failures: list[ProviderFailureOut]
    """
    Providers that failed during the call, whether another one took over or not; an addition.
    """
    consent: ConsentOut | None
    """
    Notice and consent at the beginning of the call, null without a notice; an addition.
    """
    quality: CallQualityOut | None
    """
    Quality of the line, null if the carrier does not measure it; an addition.
    """
    started_at: AwareDatetime | None
    """
    Time of the answer; null if nobody answered.
    """
    ended_at: AwareDatetime | None
    """
    Time of the end; null while the call goes on.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class CallRinging(Model):
    """
    An outbound call is ringing the destination. Not sent if the carrier reports it after the answer.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """


class CallRingingDelivery(Model):
    """
    Delivery of `call.ringing`.
    """

    event: Literal["call.ringing"]
    """
    Name of the event.
    """
    data: CallRinging
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallStarted(Model):
    """
    A call connected and started.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """


class CallStartedDelivery(Model):
    """
    Delivery of `call.started`.
    """

    event: Literal["call.started"]
    """
    Name of the event.
    """
    data: CallStarted
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallTakeover(Model):
    """
    A human agent took over a live call.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """
    taken_over_by: str
    """
    Name of the user who took the call over; an addition.
    """


class CallTakeoverDelivery(Model):
    """
    Delivery of `call.takeover`.
    """

    event: Literal["call.takeover"]
    """
    Name of the event.
    """
    data: CallTakeover
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CallTranscriptReady(Model):
    """
    The transcript of a completed call is available.
    """

    call_id: str
    """
    Id of the call.
    """
    agent_id: str | None
    """
    Id of the agent of the call; null if the agent was deleted.
    """
    direction: Literal["inbound", "outbound"]
    """
    Direction of the call, as the organization sees it.
    """
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    """
    Status of the call when the event happened.
    """
    from_number: str
    """
    Phone number of the caller, E.164.
    """
    to_number: str
    """
    Phone number that was called, E.164.
    """
    duration_seconds: int
    """
    Seconds from the answer to the end of the call; 0 before its end.
    """
    cost_total: float
    """
    Cost of the call in US dollars; 0 before its end.
    """
    error_message: str | None
    """
    Reason why the call failed; null if it did not.
    """
    started_at: AwareDatetime | None
    """
    When the call was answered; null if it was not.
    """
    ended_at: AwareDatetime | None
    """
    When the call ended; null while it goes on.
    """
    created_at: AwareDatetime
    """
    When the call was created.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created.
    """
    variables: dict[str, CallVariable] | None = None
    """
    Variables that agents have learned, by name; an addition.
    """
    interventions: list[CallIntervention] | None = None
    """
    Sentences that agents were kept from saying, and words that met a guardrail; an addition.
    """


class CallTranscriptReadyDelivery(Model):
    """
    Delivery of `call.transcript.ready`.
    """

    event: Literal["call.transcript.ready"]
    """
    Name of the event.
    """
    data: CallTranscriptReady
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class CampaignOut(Model):
    """
    A campaign.
    """

    id: str
    """
    Id of the campaign.
    """
    name: str
    """
    Name for people.
    """
    agent_id: str
    """
    Id of the agent that makes the calls.
    """
    phone_number_id: str
    """
    Id of one of the organization's phone numbers, used as the caller ID.
    """
    status: Literal["draft", "scheduled", "running", "paused", "completed", "canceled", "failed"]
    """
    `draft` and `scheduled` have not begun; `completed`, `canceled`, and `failed` are final.
    """
    status_reason: str | None
    """
    Why the campaign failed or was paused automatically; an addition.
    """
    scheduled_at: AwareDatetime | None
    """
    When a started campaign begins to dial; null or past: at once.
    """
    max_concurrent: int
    """
    Maximum of concurrent calls, within the organization's limit.
    """
    retry: Retry | None
    """
    Retries of contacts that were not reached; null: none. An addition.
    """
    voicemail_policy: VoicemailPolicy | None
    """
    What happens when voicemail answers; null: what the agent says. An addition.
    """
    total_contacts: int
    """
    Number of contacts.
    """
    called: int
    """
    Contacts that were dialed at least once.
    """
    completed: int
    """
    Contacts whose call was answered, by a person or a machine.
    """
    failed: int
    """
    Contacts that were not reached.
    """
    skipped: int
    """
    Contacts that may not be called, or are listed twice; an addition.
    """
    canceled: int
    """
    Contacts that were not dialed before the campaign ended; an addition.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """


class Condition(Model):
    """
    A condition for the actions; if it does not hold, the run is `skipped`.
    """

    field: str
    """
    Path into the event: `event`, `id`, `timestamp`, `organization_id`, or below `data.`
    """
    operator: Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]
    """
    Comparison of the field with `value`; `exists` and `not_exists` take none.
    """
    value: Any | None = None
    """
    A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.
    """


class DeclaredTool(Model):
    """
    A function of the organization that the agent's model may call, in calls and text messages.
    """

    name: str
    """
    Name by which the model calls the tool, not one of a built-in tool.
    """
    description: str
    """
    Tells the model when to call the tool and what it does.
    """
    url: str
    """
    Receives a POST with `tool`, `arguments`, and the conversation, signed with the agent's `webhook_secret`;
    returns a JSON object.
    """
    parameters: dict[str, Any] | None = None
    """
    JSON schema of the arguments, of type object.
    """
    time_limit_seconds: float | None = None
    """
    Seconds after which the request counts as failed, and the model is told so.
    """
    keypad_entries: list[KeypadArgument] | None = None
    """
    Arguments that the caller enters on the keypad before the tool is called, in this order.
    """
    needs: list[NeededVariable] | None = None
    """
    Variables that must be known before the tool is called; the request has all of them.
    """


class DeliveryOut(Model):
    """
    A webhook delivery.
    """

    id: str
    """
    Value of `X-Webhook-Delivery-Id`.
    """
    endpoint_id: str | None
    """
    Null for the webhook of an agent or of the integration.
    """
    target_kind: Literal["endpoint", "agent", "integration"]
    """
    Kind of receiver.
    """
    event_type: str
    """
    Name of the event.
    """
    status: Literal["pending", "delivered", "failed"]
    """
    `pending` until it is delivered or has failed for good.
    """
    attempts: int
    """
    Number of requests sent.
    """
    next_attempt_at: AwareDatetime | None
    """
    Time of the next request; null once it is over.
    """
    last_status_code: int | None
    """
    HTTP status of the last response; null without one.
    """
    last_error: str | None
    """
    Reason of the last failure, in words.
    """
    replayed_from_id: str | None
    """
    Id of the delivery that this one repeats; null if it repeats none.
    """
    payload: dict[str, Any]
    """
    The body as sent: `event`, `data`, `timestamp`; `unreadable` if its key was destroyed.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    delivered_at: AwareDatetime | None
    """
    Time of the successful response; null without one.
    """


class DisclosureSettings(Model):
    """
    Notice and consent at the beginning of calls.  The rule of a call is that of `countries` for the other party's
    number, else that of `presets`, else the own `ai_notice` and `consent`. If several presets apply, the stricter
    counts.
    """

    ai_notice: bool | None = None
    """
    Say that an AI is speaking.
    """
    consent: Literal["none", "notice", "ask"] | None = None
    """
    `none`: the call is recorded. `notice`: say so; who stays on the line consents. `ask`: record only after a
    yes, by voice or key.
    """
    presets: list[str] | None = None
    """
    Rules of jurisdictions, by name; `us` includes the states. Not legal advice.
    """
    countries: dict[str, DisclosureRule] | None = None
    """
    Rules by the country of the other party's number, or its region in the US and Canada.
    """
    without_consent: Literal["continue", "end_call"] | None = None
    """
    What happens to the call after a no.
    """
    texts: SpokenTexts | None = None
    """
    Sentences in the place of the standard ones.
    """


class EnteredNumbers(Model):
    """
    Numbers that were entered.
    """

    items: list[PhoneNumberOut]
    """
    Entered numbers, in the order of the request.
    """


class HandoffCondition(Model):
    """
    A fact of the call.
    """

    field: str
    """
    `keys`: the digits that the caller has pressed; `tool`: the name of a tool that has returned, and `result.`
    with a path into its result; `variables.` with the name of a variable.
    """
    operator: Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]
    """
    Comparison of the field with `value`; `exists` and `not_exists` take none.
    """
    value: Any | None = None
    """
    A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.
    """
    least_origin: Literal["words", "keypad", "carrier", "crm", "metadata", "tool"] | None = None
    """
    For `variables.`: the least trusted origin that counts, of `words`, `keypad`, `carrier`, `crm`, `metadata`,
    and `tool`; null: any.
    """


class OverviewOut(Model):
    """
    Figures of the period's calls. An average or rate without calls is null.
    """

    period: Period
    """
    The period.
    """
    total_calls: int
    """
    All calls of the period.
    """
    completed_calls: int
    """
    Calls with the status `completed`.
    """
    failed_calls: int
    """
    Calls that ended with another status than `completed`.
    """
    inbound_calls: int
    """
    Calls that others placed.
    """
    outbound_calls: int
    """
    Calls that the platform placed.
    """
    total_minutes: float
    """
    Minutes of all calls.
    """
    average_duration_seconds: float | None
    """
    Average over completed calls.
    """
    success_rate: float | None
    """
    Share of successful calls among those with a success judgment, 0 to 1.
    """
    total_cost: float
    """
    US dollars of all calls.
    """
    average_cost: float | None
    """
    US dollars of a call; null without calls.
    """
    sentiment: Sentiment
    """
    Number of calls by the other party's sentiment.
    """


class SimulationCompleted(Model):
    """
    An agent test simulation finished.
    """

    simulation_id: str
    """
    Id of the simulation.
    """
    agent_id: str | None
    """
    Id of the agent that was tested; null if the agent was deleted.
    """
    name: str
    """
    Name of the simulation.
    """
    status: Literal["passed", "failed", "error"]
    """
    `error`: the simulation could not be carried out, which says nothing about the agent.
    """
    score: float | None
    """
    Share of criteria that passed, 0 to 1; null without a result.
    """
    criteria: list[SimulationCriterion]
    """
    Result of each assertion.
    """
    turns: int
    """
    Number of the caller's turns.
    """
    duration_seconds: int
    """
    Duration of the simulation, in seconds.
    """
    error_message: str | None
    """
    Reason for status `error`; null otherwise.
    """
    started_at: AwareDatetime
    """
    When the simulation started.
    """
    completed_at: AwareDatetime
    """
    When the simulation ended.
    """


class SimulationCompletedDelivery(Model):
    """
    Delivery of `simulation.completed`.
    """

    event: Literal["simulation.completed"]
    """
    Name of the event.
    """
    data: SimulationCompleted
    """
    Subject of the event, as it was when the event happened.
    """
    timestamp: AwareDatetime
    """
    When the event happened. Retries and replays keep it.
    """


class SimulationOut(Model):
    """
    A simulation.
    """

    id: str
    """
    Id of the simulation.
    """
    agent_id: str
    """
    Id of the agent.
    """
    name: str
    """
    Name for people.
    """
    mode: Literal["text", "audio"]
    """
    `audio` calls one of the agent's numbers over the loopback carrier.
    """
    persona: str
    """
    Personality and manner of the caller.
    """
    goal: str
    """
    Goal of the caller.
    """
    lines: list[str]
    """
    The caller's lines, in order. Without lines, the model plays the caller by persona and goal.
    """
    max_turns: int
    """
    Maximum number of the caller's turns.
    """
    assertions: list[Said | NeverSaid | ToolCalled | Ended | LatencyUnder | Judged]
    """
    What has to hold for the simulation to pass.
    """
    status: Literal["queued", "running", "passed", "failed", "error"]
    """
    `passed` and `failed` are judgments of the agent; `error` is not.
    """
    score: float | None
    """
    Share of criteria that passed, 0 to 1.
    """
    criteria: list[SimulationCriterion]
    """
    One per assertion, once the simulation is over.
    """
    turns: int
    """
    Number of the caller's turns.
    """
    duration_seconds: int
    """
    Seconds from the beginning to the end.
    """
    transcript: list[SpokenOut]
    """
    Utterances and tool calls, in order.
    """
    ended_by: Literal["agent", "caller", "transfer", "limit"] | None
    """
    Side that ended the conversation; `limit` is `max_turns`. Null until then.
    """
    call_id: str | None
    """
    Id of the call in mode `audio`.
    """
    draft_revision: str | None
    """
    Revision of the draft that is tested; null: the published agent.
    """
    error_message: str | None
    """
    Reason for status `error`, which says nothing about the agent.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    started_at: AwareDatetime | None
    """
    Time of the beginning; null before it.
    """
    completed_at: AwareDatetime | None
    """
    Time of the end; null before it.
    """


class SpecialDay(Model):
    """
    A day whose hours are not those of its weekday.
    """

    date: str
    """
    Local date, `YYYY-MM-DD`.
    """
    hours: list[SpecialHours]
    """
    Hours that begin on the day; empty: closed.
    """


class UsageHistoryOut(Model):
    """
    Months, newest first.
    """

    items: list[UsageOut]
    """
    Months, newest first.
    """


class AutomationOut(Model):
    """
    An automation.
    """

    id: str
    """
    Id of the automation.
    """
    name: str
    """
    Name for people.
    """
    description: str | None
    """
    Free text for people.
    """
    enabled: bool
    """
    False: events start no runs.
    """
    trigger_type: str
    """
    Name of the event that starts a run.
    """
    trigger_filters: dict[str, Any]
    """
    Path and required value of fields; an event that does not match records no run.
    """
    conditions: list[Condition]
    """
    All conditions must hold.
    """
    actions: list[Action]
    """
    Run in order; each waits for the one before.
    """
    run_count: int
    """
    Runs recorded so far, including skipped ones.
    """
    last_run_at: AwareDatetime | None
    """
    Time of the latest run; null before the first one.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """


class BookingHours(Model):
    """
    Hours in which appointments are offered.
    """

    timezone: str | None = None
    """
    IANA time zone of the hours, such as `Europe/Berlin`.
    """
    slots: list[Slot] | None = None
    """
    Opening hours; closed at all other times.
    """
    holidays: list[str] | None = None
    """
    Local dates, `YYYY-MM-DD`, on which no hours begin.
    """
    special_days: list[SpecialDay] | None = None
    """
    Days with other hours. A day of `holidays` stays closed.
    """


class Handoff(Model):
    """
    Another agent that may get the conversation.
    """

    agent_id: str
    """
    Id of the agent that gets the conversation.
    """
    description: str | None = None
    """
    Tells the model when to hand over; empty: only `conditions` do.
    """
    conditions: list[HandoffCondition] | None = None
    """
    Facts that hand over without the model, as soon as all of them hold.
    """
    mode: Literal["replace", "call_and_return"] | None = None
    """
    `replace`: the other agent keeps the conversation. `call_and_return`: it does its part and comes back with a
    result.
    """
    context: Literal["everything", "last_turns", "summary", "nothing"] | None = None
    """
    Share of the conversation that the other agent gets, as the caller has heard it, and that this one gets back
    in mode `call_and_return`. `summary` is written by this agent's model while it still speaks.
    """
    last_turns: int | None = None
    """
    Number of utterances of both sides with `last_turns`.
    """
    greeting: Literal["continue", "own", "none"] | None = None
    """
    First words of the other agent. `continue`: it goes on, knowing that the caller has been greeted. `own`: its
    `greeting_message`. `none`: it waits for the caller.
    """


class AgentOut(Model):
    """
    An agent.
    """

    id: str
    """
    Id of the agent.
    """
    name: str
    """
    Name for people.
    """
    agent_type: Literal["voice"]
    """
    Kind of agent; there is only `voice`.
    """
    status: Literal["active", "paused"]
    """
    A `paused` agent takes and places no calls, and answers no text messages.
    """
    version: int
    """
    Incremented by each update that changes something; an addition.
    """
    required_simulations: list[str]
    """
    Names of the simulations that a draft must pass before it is published. With any, settings are changed by a
    draft only. An addition.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """
    system_prompt: str
    """
    The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`.
    """
    llm_provider: str
    """
    One of the organization's providers; defaults to the first one.
    """
    llm_model: str | None
    """
    Name of the provider's model; null: the provider's default.
    """
    llm_temperature: float
    """
    Randomness of the model's words, from 0 (the same answers) to 2.
    """
    tts_provider: str
    """
    Provider of the voice, one of the organization's; defaults to the first one.
    """
    tts_voice_id: str | None
    """
    Id of the voice at the provider; null: the provider's default.
    """
    tts_model: str | None
    """
    Name of the voice provider's model; null: the provider's default.
    """
    voice_speed: float
    """
    Speed of the voice as a multiple of the normal one; not every provider can change it.
    """
    pronunciations: dict[str, str]
    """
    Pronunciation of words, in any letter case; an addition.
    """
    stt_provider: str
    """
    Provider that transcribes, one of the organization's; defaults to the first one.
    """
    stt_model: str | None
    """
    Name of the transcribing provider's model; null: the provider's default.
    """
    stt_language: str
    """
    BCP 47 tag; `mul` if callers switch between languages.
    """
    greeting_message: str
    """
    The agent's first words; empty: the agent waits for the caller.
    """
    end_call_silence_seconds: int
    """
    Seconds without speech of either party after which the call ends.
    """
    max_call_duration_seconds: int
    """
    Seconds after which the call ends, whatever happens in it.
    """
    allow_interruptions: bool
    """
    False: the agent finishes what it says, and then answers what the caller said meanwhile.
    """
    interruption_min_words: int
    """
    Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "mhm" and
    "okay" never do.
    """
    vad_confidence: float
    """
    Least probability, from 0 to 1, at which audio counts as speech.
    """
    vad_start_secs: float
    """
    Seconds of speech after which the caller counts as speaking, from 0 to 1.
    """
    vad_min_volume: float
    """
    Least volume, from 0 to 1, at which audio counts as speech.
    """
    webhook_url: str | None
    """
    Receives the events of this agent's calls, signed.
    """
    knowledge_base_ids: list[str]
    """
    Knowledge bases that the agent searches, in calls and text messages; an addition.
    """
    appointment_type_ids: list[str]
    """
    Appointment types that the agent books, moves, and cancels; an addition.
    """
    tools: list[DeclaredTool]
    """
    Functions that the model may call; an addition.
    """
    disabled_tools: list[str]
    """
    Names of tools that the agent does not have, such as `transfer_call`; an addition.
    """
    allowed_numbers: list[str]
    """
    Phone numbers to which the model may transfer calls and send text messages, and clients (`client:<name>`) to
    which it may transfer calls, besides those in `system_prompt`; an addition.
    """
    any_number: bool
    """
    The model may transfer calls and send text messages to any number that the organization may call, also to one
    that a caller asks for; an addition.
    """
    queue_wait_seconds: int | None
    """
    Longest wait of a caller for a person; null: the agent has no `ask_for_person` and `note_callback`. An
    addition.
    """
    queue_fallback: Literal["agent", "callback"]
    """
    What happens if no person answers in time. `agent`: the agent says so and goes on. `callback`: a callback is
    noted, too. An addition.
    """
    handoffs: list[Handoff]
    """
    Other agents to which this one hands conversations over, each once; an addition.
    """
    variables: list[AgentVariable]
    """
    Values that the agent learns in a conversation, besides `metadata`; an addition.
    """
    claims: list[Claim]
    """
    Statements that the agent makes only if they are true, each once; an addition.
    """
    banned_phrases: list[str]
    """
    Phrases that the agent does not say, in any letter case; an addition.
    """
    banned_topics: list[BannedTopic]
    """
    Subjects that the agent does not talk about; an addition.
    """
    guardrails: list[Guardrail]
    """
    Words of the other side that the agent does not simply answer; an addition.
    """
    check_model: str | None
    """
    Model of `llm_provider` that judges the caller's words for `guardrails`, and sentences of the agent that leave
    doubt; null: `llm_model`. An addition.
    """
    extraction_schema: ExtractionSchema | None
    """
    Schema of `extracted_data` of this agent's calls; null: the analysis decides. An addition.
    """
    redaction: Redaction | None
    """
    Private data to redact; null: the default of the organization's tenant file. An addition.
    """
    disclosure: DisclosureSettings | None
    """
    Notice of AI and recording, and consent, at the beginning of calls. The organization's tenant file may demand
    more, and never less. An addition.
    """
    turn_detection: TurnDetection
    """
    Rules by which a caller who pauses has finished; an addition.
    """
    voicemail_policy: VoicemailPolicy
    """
    What happens when voicemail answers an outbound call; an addition.
    """


class AppointmentTypeOut(Model):
    """
    An appointment type.
    """

    id: str
    """
    Id of the appointment type.
    """
    name: str
    """
    Name for people.
    """
    created_at: AwareDatetime
    """
    Time of creation.
    """
    updated_at: AwareDatetime
    """
    Time of the last change.
    """
    calendar_ids: list[str]
    """
    Ids of the calendars that the appointments are booked in.
    """
    calendar_mode: Literal["any", "all"]
    """
    `any`: in one calendar that is free. `all`: in all calendars, which must all be free.
    """
    duration_minutes: int
    """
    Length of an appointment.
    """
    grid_minutes: int | None
    """
    Distance of offered times, from the beginning of the hours; null: `duration_minutes`.
    """
    buffer_before_minutes: int
    """
    Minutes that must be free before an appointment.
    """
    buffer_after_minutes: int
    """
    Minutes that must be free after an appointment.
    """
    hours: BookingHours
    """
    Hours in which appointments are offered, in the form of a phone number's `schedule`.
    """
    lead_minutes: int
    """
    Shortest time from the booking to the appointment.
    """
    horizon_days: int
    """
    Days ahead for which appointments are offered.
    """
    daily_limit: int | None
    """
    Most appointments of the type on one local day; null: no limit.
    """
    reminder_minutes: list[int]
    """
    Minutes before an appointment at which `appointment.reminder` is published.
    """
    fields: list[AppointmentField]
    """
    Questions that are asked when an appointment is booked.
    """
    check_fields: list[str]
    """
    Names of questions whose answers a person has to give who moves or cancels an appointment from another number;
    empty: an agent changes it for its own number only.
    """
