"""Bodies and queries of requests. Generated: run `make clients` instead of editing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class AgentVariable(TypedDict):
    """
    A value that the agent learns in a conversation.
    """

    name: str
    """
    Name of the variable, each once.
    """
    description: NotRequired[str]
    """
    Tells the model what the value is.
    """
    source: NotRequired[Literal["words", "keypad", "tool"]]
    """
    `words`: the model notes what the caller says. `keypad`: the model lets the caller enter it, and does not see
    it. `tool`: it stands in the result of a tool.
    """
    prompt: NotRequired[str]
    """
    With `keypad`: spoken before the entry.
    """
    max_digits: NotRequired[int]
    """
    With `keypad`: the entry ends after so many digits, or `#`.
    """
    tool: NotRequired[str]
    """
    With `tool`: name of the tool.
    """
    path: NotRequired[str]
    """
    With `tool`: path of the value in the result.
    """


class AppointmentCreate(TypedDict):
    """
    An appointment to book.
    """

    slot_token: str
    """
    Token of a free time.
    """
    contact_id: NotRequired[str | None]
    """
    Id of the contact who comes; omitted or null: `phone_number` and `name` say who.
    """
    phone_number: NotRequired[str | None]
    """
    E.164 number of the person who comes.
    """
    name: NotRequired[str | None]
    """
    Name of the person who comes.
    """
    fields: NotRequired[Mapping[str, str]]
    """
    Answers to the questions of the appointment type, by their names.
    """


class AppointmentField(TypedDict):
    """
    A question that is asked when an appointment is booked.
    """

    name: str
    """
    Key of the answer in `fields` of an appointment.
    """
    description: NotRequired[str]
    """
    The question, for people and for agents.
    """
    required: NotRequired[bool]
    """
    Whether an appointment needs the answer.
    """


class AppointmentUpdate(TypedDict):
    """
    A change of an appointment.
    """

    slot_token: NotRequired[str]
    """
    Token of another free time, to which the appointment is moved.
    """
    name: NotRequired[str]
    """
    Name of the person who comes.
    """
    fields: NotRequired[Mapping[str, str]]
    """
    All answers, in place of the earlier ones.
    """
    is_confirmed: NotRequired[bool]
    """
    Whether the person has confirmed to come.
    """


class BannedTopic(TypedDict):
    """
    A subject that the agent does not talk about.
    """

    name: str
    """
    Subject, for the model.
    """
    keywords: NotRequired[Sequence[str]]
    """
    Words of sentences that may be about it, about which a model is asked; empty: the name. Other sentences are
    not delayed.
    """


class Claim(TypedDict):
    """
    A statement that the agent makes only if a tool has returned success in the conversation.
    """

    name: str
    """
    `booked`, `rescheduled`, `canceled`, `transferred`, `message_sent`, `opted_out`, and `refunded` are found
    without `phrases`, in English, German, Spanish, and French. `price` and `opening_hours`: the figure must stand
    in what the agent was given. Other names need `phrases`.
    """
    phrases: NotRequired[Sequence[str]]
    """
    Phrases that make the claim, in any letter case.
    """
    tools: NotRequired[Sequence[str]]
    """
    Tools one of which must have returned success, besides the built-in ones of the claim. With none the agent
    never makes the claim.
    """


class ContactCreate(TypedDict):
    """
    A new contact.
    """

    name: NotRequired[str | None]
    """
    Name of the person.
    """
    email: NotRequired[str | None]
    """
    Email address, as given.
    """
    company: NotRequired[str | None]
    """
    Name of the company.
    """
    notes: NotRequired[str | None]
    """
    Free text, at most 10 000 characters.
    """
    tags: NotRequired[str | None]
    """
    Free text; the separator of tags is yours to choose.
    """
    address: NotRequired[str | None]
    """
    Postal address, as given.
    """
    role: NotRequired[str | None]
    """
    Job or part of the person, such as `buyer`.
    """
    is_favorite: NotRequired[bool]
    """
    A mark of your own; it changes nothing else.
    """
    phone_number: str
    """
    E.164 number, which only one contact of the organization has.
    """


class ContactToCall(TypedDict):
    """
    A contact to call. Not a `RequestBody`: for a hundred thousand contacts the campaign's own check for NUL is
    enough.
    """

    phone_number: str
    """
    E.164 number to call.
    """
    name: NotRequired[str | None]
    """
    Name of the person; `{{name}}` in the agent's texts.
    """


class ContactUpdate(TypedDict):
    """
    A partial update of a contact; null clears a text.
    """

    name: NotRequired[str | None]
    """
    Name of the person.
    """
    email: NotRequired[str | None]
    """
    Email address, as given.
    """
    company: NotRequired[str | None]
    """
    Name of the company.
    """
    notes: NotRequired[str | None]
    """
    Free text, at most 10 000 characters.
    """
    tags: NotRequired[str | None]
    """
    Free text; the separator of tags is yours to choose.
    """
    address: NotRequired[str | None]
    """
    Postal address, as given.
    """
    role: NotRequired[str | None]
    """
    Job or part of the person, such as `buyer`.
    """
    is_favorite: NotRequired[bool]
    """
    A mark of your own; it changes nothing else.
    """
    phone_number: NotRequired[str]
    """
    E.164 number, which only one contact of the organization has.
    """


class DisclosureRule(TypedDict):
    """
    Notice and consent at the beginning of a call.
    """

    ai_notice: NotRequired[bool]
    """
    Say that an AI is speaking.
    """
    consent: NotRequired[Literal["none", "notice", "ask"]]
    """
    `none`: the call is recorded. `notice`: say so; who stays on the line consents. `ask`: record only after a
    yes, by voice or key.
    """


class DoNotCallCreate(TypedDict):
    """
    A number to add to the do-not-call list.
    """

    phone_number: str
    """
    E.164 number that is neither called nor texted.
    """
    note: NotRequired[str]
    """
    Free text for people.
    """


class DocumentCreate(TypedDict):
    """
    A new document.
    """

    filename: str
    """
    Name of the file; its extension says the type if `content_type` does not.
    """
    content: str
    """
    The text, at most 5 MiB; PDF and DOCX as base64.
    """
    content_type: NotRequired[str | None]
    """
    `text/plain`, `text/markdown`, `text/html`, `text/csv`, `application/json`, `application/pdf` or
    `application/vnd.openxmlformats-officedocument.wordprocessingml.document`. Defaults to the extension's type.
    """


class DraftPublish(TypedDict):
    """
    The draft to publish.
    """

    revision: str
    """
    Revision of the draft that you read. Another one is a 409.
    """


class Ended(TypedDict):
    """
    This side ends the conversation.
    """

    name: NotRequired[str | None]
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


class EndpointCreate(TypedDict):
    """
    A new endpoint.
    """

    description: NotRequired[str | None]
    """
    Free text for people.
    """
    events: NotRequired[
        Sequence[
            Literal[
                "call.started",
                "call.ringing",
                "call.completed",
                "call.failed",
                "call.takeover",
                "call.handed_off",
                "call.transcript.ready",
                "sms.received",
                "sms.sent",
                "simulation.completed",
                "appointment.booked",
                "appointment.moved",
                "appointment.canceled",
                "appointment.reminder",
                "calendar.disconnected",
            ]
        ]
        | None
    ]
    """
    Event names; omitted, null, or empty: every event.
    """
    url: str
    """
    A public address; https is strongly recommended.
    """


class EndpointUpdate(TypedDict):
    """
    A partial update of an endpoint.
    """

    description: NotRequired[str | None]
    """
    Free text for people.
    """
    events: NotRequired[
        Sequence[
            Literal[
                "call.started",
                "call.ringing",
                "call.completed",
                "call.failed",
                "call.takeover",
                "call.handed_off",
                "call.transcript.ready",
                "sms.received",
                "sms.sent",
                "simulation.completed",
                "appointment.booked",
                "appointment.moved",
                "appointment.canceled",
                "appointment.reminder",
                "calendar.disconnected",
            ]
        ]
        | None
    ]
    """
    Event names; omitted, null, or empty: every event.
    """
    url: NotRequired[str]
    """
    Pending deliveries go to the new address.
    """
    enabled: NotRequired[bool]
    """
    Enabling resets `consecutive_failures`; pending deliveries continue.
    """


class EnteredNumber(TypedDict):
    """
    A number that a trunk already has.
    """

    phone_number: str
    """
    E.164 number.
    """
    friendly_name: NotRequired[str | None]
    """
    Name for people; null: the number.
    """


class ExtractedField(TypedDict):
    """
    A value to extract from a call.
    """

    type: Literal["string", "number", "integer", "boolean"]
    """
    JSON type of the value.
    """
    description: NotRequired[str]
    """
    Description of the value for the analysis.
    """
    enum: NotRequired[Sequence[str] | None]
    """
    The only texts allowed.
    """


class ExtractionSchema(TypedDict):
    """
    The values that the analysis after a call extracts, as a JSON schema: an object of plain values.
    """

    type: NotRequired[Literal["object"]]
    """
    Always `object`.
    """
    properties: Mapping[str, ExtractedField]
    """
    Values to extract, by their name in `extracted_data`.
    """
    required: NotRequired[Sequence[str]]
    """
    Names of the values that must not be missing.
    """


class Guardrail(TypedDict):
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
    description: NotRequired[str]
    """
    The agent's subject for `off_subject`, and a category for `content`, for the model that judges.
    """
    action: NotRequired[Literal["ignore", "answer", "person", "end"]]
    """
    `ignore`: the model is told not to act on the words, and goes on. `answer`: the agent says `text` instead of
    its answer. `person`: the caller waits for a person, as with `ask_for_person`. `end`: the agent says `text`
    and ends the call.
    """
    text: NotRequired[str]
    """
    Said with `answer`, where it is needed, and before `person` and `end`.
    """


class IntegrationUpdate(TypedDict):
    """
    A partial update of the integration; null removes a value.
    """

    partner_api_key: NotRequired[str | None]
    """
    Stored encrypted; never returned.
    """
    webhook_url: NotRequired[str | None]
    """
    Receives every event of the organization.
    """
    webhook_secret: NotRequired[str | None]
    """
    Signs the requests to the webhook; never returned.
    """


class Judged(TypedDict):
    """
    The agent's model reads the transcript and judges whether the statement holds.
    """

    name: NotRequired[str | None]
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


class KeypadArgument(TypedDict):
    """
    An argument of a tool that the caller enters on the phone's keypad. The model does not see it.
    """

    parameter: str
    """
    Name of a property of `parameters`.
    """
    prompt: NotRequired[str]
    """
    Spoken before the entry.
    """
    max_digits: NotRequired[int]
    """
    The entry ends after so many digits, or with `#`.
    """


class KnowledgeBaseCreate(TypedDict):
    """
    A new knowledge base.
    """

    name: str
    """
    Name for people.
    """
    description: NotRequired[str]
    """
    Free text for people.
    """


class KnowledgeSearch(TypedDict):
    """
    A search of knowledge bases.
    """

    query: str
    """
    Question or words to look for.
    """
    knowledge_base_ids: NotRequired[Sequence[str] | None]
    """
    Knowledge bases to search; defaults to all of the organization's.
    """
    top_k: NotRequired[int]
    """
    Maximum number of passages.
    """


class LatencyUnder(TypedDict):
    """
    Each answer of the agent starts within the limit. Mode `audio` only.
    """

    name: NotRequired[str | None]
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


class NeededVariable(TypedDict):
    """
    A variable without which a tool does not run.
    """

    name: str
    """
    Name of the variable.
    """
    least_origin: NotRequired[Literal["words", "keypad", "carrier", "crm", "metadata", "tool"]]
    """
    The least trusted origin that counts: `words`, `keypad`, `carrier`, `crm`, `metadata`, or `tool`, in this
    order.
    """


class NeverSaid(TypedDict):
    """
    The agent does not say the text in any turn.
    """

    name: NotRequired[str | None]
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


class NumberSearch(TypedDict):
    """
    Search criteria for phone numbers.
    """

    country: str
    """
    ISO 3166 alpha-2.
    """
    area_code: NotRequired[str | None]
    """
    Digits after the country code; null: any.
    """


class PhoneNumberBuy(TypedDict):
    """
    A number to buy, from the search results.
    """

    phone_number: str
    """
    E.164 number, from the search results.
    """
    friendly_name: NotRequired[str | None]
    """
    Name for people; null: the number.
    """
    inbound_agent_id: NotRequired[str | None]
    """
    Id of the agent that answers calls and text messages; null: nobody.
    """
    carrier_address: NotRequired[str | None]
    """
    Id of an address at the carrier, for a country that demands one; null: that of the carrier's settings. An
    addition.
    """
    carrier_requirements: NotRequired[str | None]
    """
    Id of the documents at the carrier that a country demands: Twilio's bundle, Telnyx's requirement group,
    Plivo's compliance application; null: that of the carrier's settings. An addition.
    """


class PhoneNumbersImport(TypedDict):
    """
    Numbers of a carrier that sells none, such as a SIP trunk. All are entered, or none.
    """

    numbers: Sequence[EnteredNumber]
    """
    Numbers to enter.
    """
    inbound_agent_id: NotRequired[str | None]
    """
    Id of the agent that answers their calls and text messages; null: nobody.
    """


class PrivacyRequestCreate(TypedDict):
    """
    A person's request. The person is known by a phone number.
    """

    kind: Literal["export", "erase"]
    """
    A copy of the person's data, or its deletion for good.
    """
    phone_number: str
    """
    E.164 number by which the person is known.
    """


class Redaction(TypedDict):
    """
    Private data of an agent's conversations that is replaced before it is kept or sent.
    """

    kinds: Sequence[str]
    """
    Kinds to redact: `card_number`, `iban`, `national_id`, `pin`, `phone_number`, `email_address`, `keypad`, and
    those of plugins. Empty: nothing, whatever the organization's default is.
    """
    visible_to_model: NotRequired[Sequence[str]]
    """
    Those of the kinds that the agent's model sees during a call, because it needs them.
    """


class ReplayRequest(TypedDict):
    """
    The period whose failed deliveries are replayed, by the time of the event.
    """

    since: str
    """
    Beginning of the period.
    """
    until: NotRequired[str | None]
    """
    Omitted or null: until now.
    """


class Retry(TypedDict):
    """
    Retries of a contact; an addition to the specification.
    """

    attempts: int
    """
    Number of retries after the first call.
    """
    delay_seconds: NotRequired[int]
    """
    Seconds between a call and the next one.
    """
    on: NotRequired[Sequence[Literal["busy", "no-answer", "voicemail"]]]
    """
    Outcomes after which the contact is called again.
    """


class Said(TypedDict):
    """
    The agent says the text in one turn.
    """

    name: NotRequired[str | None]
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


class Slot(TypedDict):
    """
    Opening hours on some days; if `end` is not after `start`, they end on the next day.
    """

    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
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


class SmsConversationUpdate(TypedDict):
    """
    Changes to a conversation.
    """

    assigned_to: NotRequired[str | None]
    """
    Id of the member who answers in the agent's place; null: the agent answers.
    """
    resolved: NotRequired[bool]
    """
    Resolve the conversation, which ends its assignment, or open it again.
    """


class SmsCreate(TypedDict):
    """
    A text message to send.
    """

    to_number: str
    """
    E.164 number of the recipient.
    """
    from_number_id: str
    """
    One of the organization's phone numbers.
    """
    body: str
    """
    Text of the message, 1 to 1600 characters.
    """
    media_urls: NotRequired[Sequence[str]]
    """
    Public addresses of up to 10 files, which the carrier fetches and sends; an addition.
    """


class SpecialHours(TypedDict):
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


class SpokenTexts(TypedDict):
    """
    Sentences of the organization; null: the standard one in the agent's language.
    """

    ai_notice: NotRequired[str | None]
    """
    Says that an AI is speaking.
    """
    recording_notice: NotRequired[str | None]
    """
    Says that the call is recorded.
    """
    question: NotRequired[str | None]
    """
    Names both ways to answer: yes and no, or keys 1 and 2.
    """
    unclear: NotRequired[str | None]
    """
    Spoken before the question is repeated.
    """
    refused: NotRequired[str | None]
    """
    Spoken without consent, if the call goes on.
    """
    goodbye: NotRequired[str | None]
    """
    Spoken without consent, if the call ends.
    """


class ToolCalled(TypedDict):
    """
    The agent calls a tool. Mode `text` can check its `arguments` too.
    """

    name: NotRequired[str | None]
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
    arguments: NotRequired[Mapping[str, Any]]
    """
    Required arguments; others are allowed.
    """


class TurnDetection(TypedDict):
    """
    Rules by which a caller who pauses has finished.
    """

    mode: NotRequired[Literal["silence", "text", "audio", "auto"]]
    """
    `silence`: every pause of `min_silence_seconds` ends the turn. `text`: unless the words are incomplete.
    `audio`: unless the organization's turn detector judges it incomplete. `auto`: by the words, and by the turn
    detector where they leave doubt.
    """
    min_silence_seconds: NotRequired[float]
    """
    Shortest pause that ends a turn.
    """
    max_silence_seconds: NotRequired[float]
    """
    Pause that ends an incomplete turn, too.
    """


class VoicemailPolicy(TypedDict):
    """
    Policy for machines that answer outbound calls.
    """

    action: NotRequired[Literal["off", "hang_up", "leave_message"]]
    """
    `off`: machines are not recognized, and the agent talks to them. `hang_up`: the call ends. `leave_message`:
    the agent is silent until the greeting is over, says the message, and hangs up.
    """
    message: NotRequired[str]
    """
    Spoken after the beep; `{{name}}` is replaced by a value of `metadata`.
    """
    prompt: NotRequired[str]
    """
    Instructions by which the model writes the message, instead of `message`.
    """
    carrier_detection: NotRequired[bool]
    """
    The carrier recognizes machines, which most bill for each call. Otherwise, and where a carrier cannot, the
    platform judges the audio.
    """


class WidgetCreate(TypedDict):
    """
    A new widget.
    """

    enabled: NotRequired[bool]
    """
    False turns the widget off on every page.
    """
    demo_enabled: NotRequired[bool]
    """
    Serve the demo page, which anybody with its address can open.
    """
    allowed_origins: NotRequired[Sequence[str]]
    """
    Sites that may show the widget: origins such as `https://www.example.com`, or `https://*.example.com` for
    every subdomain, but not the domain itself.
    """
    text_enabled: NotRequired[bool]
    """
    Visitors may write.
    """
    voice_enabled: NotRequired[bool]
    """
    Visitors may talk. Needs a carrier with calls over the platform's WebSocket.
    """
    color: NotRequired[str]
    """
    Color of the button and of the visitor's messages.
    """
    position: NotRequired[Literal["left", "right"]]
    """
    Corner of the page, at the bottom.
    """
    title: NotRequired[str | None]
    """
    Title of the panel; null: the agent's name.
    """
    greeting: NotRequired[str | None]
    """
    First message of a chat; null: the agent's greeting. Calls begin with the agent's.
    """
    language: NotRequired[Literal["en", "de", "es", "fr"] | None]
    """
    Language of the buttons; null: the first of the visitor's browser, or else English.
    """
    max_sessions_per_minute: NotRequired[int]
    """
    Conversations that may begin in a minute.
    """
    max_sessions_per_minute_per_address: NotRequired[int]
    """
    Conversations that one client address may begin in a minute.
    """
    max_concurrent_sessions: NotRequired[int]
    """
    Conversations at the same time.
    """
    max_spend_per_day: NotRequired[float]
    """
    US dollars that the widget's conversations of the last 24 hours may cost. Beyond it no conversation begins,
    and chats are not answered; calls in progress go on.
    """
    name: str
    """
    Name for people.
    """
    agent_id: str
    """
    Id of the agent that visitors talk to.
    """


class WidgetUpdate(TypedDict):
    """
    A partial update of a widget.
    """

    enabled: NotRequired[bool]
    """
    False turns the widget off on every page.
    """
    demo_enabled: NotRequired[bool]
    """
    Serve the demo page, which anybody with its address can open.
    """
    allowed_origins: NotRequired[Sequence[str]]
    """
    Sites that may show the widget: origins such as `https://www.example.com`, or `https://*.example.com` for
    every subdomain, but not the domain itself.
    """
    text_enabled: NotRequired[bool]
    """
    Visitors may write.
    """
    voice_enabled: NotRequired[bool]
    """
    Visitors may talk. Needs a carrier with calls over the platform's WebSocket.
    """
    color: NotRequired[str]
    """
    Color of the button and of the visitor's messages.
    """
    position: NotRequired[Literal["left", "right"]]
    """
    Corner of the page, at the bottom.
    """
    title: NotRequired[str | None]
    """
    Title of the panel; null: the agent's name.
    """
    greeting: NotRequired[str | None]
    """
    First message of a chat; null: the agent's greeting. Calls begin with the agent's.
    """
    language: NotRequired[Literal["en", "de", "es", "fr"] | None]
    """
    Language of the buttons; null: the first of the visitor's browser, or else English.
    """
    max_sessions_per_minute: NotRequired[int]
    """
    Conversations that may begin in a minute.
    """
    max_sessions_per_minute_per_address: NotRequired[int]
    """
    Conversations that one client address may begin in a minute.
    """
    max_concurrent_sessions: NotRequired[int]
    """
    Conversations at the same time.
    """
    max_spend_per_day: NotRequired[float]
    """
    US dollars that the widget's conversations of the last 24 hours may cost. Beyond it no conversation begins,
    and chats are not answered; calls in progress go on.
    """
    name: NotRequired[str]
    """
    Name for people.
    """
    agent_id: NotRequired[str]
    """
    Id of the agent that visitors talk to.
    """


class ListAgentsQuery(TypedDict):
    """
    Query parameters of `agents.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    agent_type: NotRequired[str | None]
    """
    Kind of agent; there is only `voice`.
    """


class ListSimulationsQuery(TypedDict):
    """
    Query parameters of `agents.list_simulations`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListAgentVersionsQuery(TypedDict):
    """
    Query parameters of `agents.list_versions`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class GetCallsOverTimeQuery(TypedDict):
    """
    Query parameters of `analytics.get_calls_over_time`.
    """

    days: NotRequired[int]
    """
    Number of days up to and including today.
    """


class GetOverviewQuery(TypedDict):
    """
    Query parameters of `analytics.get_overview`.
    """

    days: NotRequired[int]
    """
    Number of days up to and including today.
    """


class ListAppointmentTypesQuery(TypedDict):
    """
    Query parameters of `appointment_types.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


ListFreeTimesQuery = TypedDict(
    "ListFreeTimesQuery",
    {
        "from": NotRequired[str | None],
        "to": NotRequired[str | None],
        "time_zone": NotRequired[str | None],
        "limit": NotRequired[int],
    },
)


class ListAppointmentsQuery(TypedDict):
    """
    Query parameters of `appointments.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    appointment_type_id: NotRequired[str | None]
    """
    Id of an appointment type.
    """
    phone_number: NotRequired[str | None]
    """
    Exact phone number.
    """
    status: NotRequired[Literal["pending", "booked", "canceled", "failed"] | None]
    """
    Exact status; omitted: `booked` and `canceled`.
    """
    starts_after: NotRequired[str | None]
    """
    Appointments that begin at this time or later.
    """
    starts_before: NotRequired[str | None]
    """
    Appointments that begin before this time.
    """


class ListAutomationsQuery(TypedDict):
    """
    Query parameters of `automations.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListAutomationRunsQuery(TypedDict):
    """
    Query parameters of `automations.list_runs`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class CreateBrowserCallTokenQuery(TypedDict):
    """
    Query parameters of `browser_call.create_token`.
    """

    platform: NotRequired[Literal["web", "ios", "android"]]
    """
    Platform of the client.
    """
    identity: NotRequired[str | None]
    """
    Name by which the client can be rung, as `client:<name>`: 1 to 50 letters, digits, and underscores. Without
    it, the client only calls. An addition.
    """


class ListCalendarsQuery(TypedDict):
    """
    Query parameters of `calendars.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListCallsQuery(TypedDict):
    """
    Query parameters of `calls.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    agent_id: NotRequired[str | None]
    """
    Id of the agent.
    """
    direction: NotRequired[Literal["inbound", "outbound"] | None]
    """
    Direction of the calls.
    """
    status: NotRequired[
        Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"] | None
    ]
    """
    Status of the calls.
    """
    created_after: NotRequired[str | None]
    """
    Earliest time of creation.
    """
    created_before: NotRequired[str | None]
    """
    Time of creation that the calls are before.
    """
    ended_reason: NotRequired[
        Literal[
            "caller_hung_up",
            "agent_hung_up",
            "silence",
            "max_duration",
            "voicemail",
            "transferred",
            "taken_over",
            "canceled",
            "no_consent",
            "do_not_call",
            "destination_not_allowed",
            "invalid_number",
            "insufficient_balance",
            "provider_failed",
            "shutdown",
            "error",
        ]
        | None
    ]
    """
    Reason for which the calls ended.
    """
    user_sentiment: NotRequired[Literal["positive", "neutral", "negative", "unknown"] | None]
    """
    Sentiment of the other party.
    """
    call_successful: NotRequired[bool | None]
    """
    Success, as judged by the analysis.
    """
    min_duration_seconds: NotRequired[int | None]
    """
    Shortest duration.
    """
    max_duration_seconds: NotRequired[int | None]
    """
    Longest duration.
    """
    phone: NotRequired[str | None]
    """
    Phone number of either party.
    """
    contact_id: NotRequired[str | None]
    """
    Id of the contact who has either party's number.
    """
    tag: NotRequired[str | None]
    """
    A tag of the contact, ignoring case; commas separate tags.
    """
    transcript: NotRequired[str | None]
    """
    Words that the transcript contains, ignoring case, once the call is over. Of common words `total` counts up to
    10 000 calls. 409 if transcripts are encrypted.
    """


class ListCampaignsQuery(TypedDict):
    """
    Query parameters of `campaigns.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListCampaignContactsQuery(TypedDict):
    """
    Query parameters of `campaigns.list_contacts`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    status: NotRequired[
        Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"] | None
    ]
    """
    Status of the contacts.
    """


class ListContactsQuery(TypedDict):
    """
    Query parameters of `contacts.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    search: NotRequired[str]
    """
    Every word must occur in name, company, email, number, notes, or tags.
    """
    phone: NotRequired[str | None]
    """
    Exact phone number.
    """


class ListDoNotCallEntriesQuery(TypedDict):
    """
    Query parameters of `do_not_call.list_entries`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    phone_number: NotRequired[str | None]
    """
    Exact phone number.
    """


class ExportCallsQuery(TypedDict):
    """
    Query parameters of `exports.export_calls`.
    """

    agent_id: NotRequired[str | None]
    """
    Id of the agent.
    """
    direction: NotRequired[Literal["inbound", "outbound"] | None]
    """
    Direction of the calls.
    """
    status: NotRequired[
        Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"] | None
    ]
    """
    Status of the calls.
    """
    created_after: NotRequired[str | None]
    """
    Earliest time of creation.
    """
    created_before: NotRequired[str | None]
    """
    Time of creation that the calls are before.
    """
    ended_reason: NotRequired[
        Literal[
            "caller_hung_up",
            "agent_hung_up",
            "silence",
            "max_duration",
            "voicemail",
            "transferred",
            "taken_over",
            "canceled",
            "no_consent",
            "do_not_call",
            "destination_not_allowed",
            "invalid_number",
            "insufficient_balance",
            "provider_failed",
            "shutdown",
            "error",
        ]
        | None
    ]
    """
    Reason for which the calls ended.
    """
    user_sentiment: NotRequired[Literal["positive", "neutral", "negative", "unknown"] | None]
    """
    Sentiment of the other party.
    """
    call_successful: NotRequired[bool | None]
    """
    Success, as judged by the analysis.
    """
    min_duration_seconds: NotRequired[int | None]
    """
    Shortest duration.
    """
    max_duration_seconds: NotRequired[int | None]
    """
    Longest duration.
    """
    phone: NotRequired[str | None]
    """
    Phone number of either party.
    """
    contact_id: NotRequired[str | None]
    """
    Id of the contact who has either party's number.
    """
    tag: NotRequired[str | None]
    """
    A tag of the contact, ignoring case; commas separate tags.
    """
    transcript: NotRequired[str | None]
    """
    Words that the transcript contains, ignoring case, once the call is over. Of common words `total` counts up to
    10 000 calls. 409 if transcripts are encrypted.
    """
    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """


class ExportCampaignContactsQuery(TypedDict):
    """
    Query parameters of `exports.export_campaign_contacts`.
    """

    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """
    campaign_id: str
    """
    Id of the campaign.
    """


class ExportContactsQuery(TypedDict):
    """
    Query parameters of `exports.export_contacts`.
    """

    search: NotRequired[str]
    """
    Every word must occur in name, company, email, number, notes, or tags.
    """
    phone: NotRequired[str | None]
    """
    Exact phone number.
    """
    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """


class ExportMessagesQuery(TypedDict):
    """
    Query parameters of `exports.export_messages`.
    """

    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """
    created_after: NotRequired[str | None]
    """
    Earliest time of creation.
    """
    created_before: NotRequired[str | None]
    """
    Time of creation that the rows are before.
    """


class ExportTranscriptsQuery(TypedDict):
    """
    Query parameters of `exports.export_transcripts`.
    """

    agent_id: NotRequired[str | None]
    """
    Id of the agent.
    """
    direction: NotRequired[Literal["inbound", "outbound"] | None]
    """
    Direction of the calls.
    """
    status: NotRequired[
        Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"] | None
    ]
    """
    Status of the calls.
    """
    created_after: NotRequired[str | None]
    """
    Earliest time of creation.
    """
    created_before: NotRequired[str | None]
    """
    Time of creation that the calls are before.
    """
    ended_reason: NotRequired[
        Literal[
            "caller_hung_up",
            "agent_hung_up",
            "silence",
            "max_duration",
            "voicemail",
            "transferred",
            "taken_over",
            "canceled",
            "no_consent",
            "do_not_call",
            "destination_not_allowed",
            "invalid_number",
            "insufficient_balance",
            "provider_failed",
            "shutdown",
            "error",
        ]
        | None
    ]
    """
    Reason for which the calls ended.
    """
    user_sentiment: NotRequired[Literal["positive", "neutral", "negative", "unknown"] | None]
    """
    Sentiment of the other party.
    """
    call_successful: NotRequired[bool | None]
    """
    Success, as judged by the analysis.
    """
    min_duration_seconds: NotRequired[int | None]
    """
    Shortest duration.
    """
    max_duration_seconds: NotRequired[int | None]
    """
    Longest duration.
    """
    phone: NotRequired[str | None]
    """
    Phone number of either party.
    """
    contact_id: NotRequired[str | None]
    """
    Id of the contact who has either party's number.
    """
    tag: NotRequired[str | None]
    """
    A tag of the contact, ignoring case; commas separate tags.
    """
    transcript: NotRequired[str | None]
    """
    Words that the transcript contains, ignoring case, once the call is over. Of common words `total` counts up to
    10 000 calls. 409 if transcripts are encrypted.
    """
    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """


class ExportUsageQuery(TypedDict):
    """
    Query parameters of `exports.export_usage`.
    """

    format: NotRequired[Literal["csv", "jsonl"]]
    """
    `csv`: with a header. `jsonl`: one JSON object a line.
    """


class ListKnowledgeBasesQuery(TypedDict):
    """
    Query parameters of `knowledge_bases.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListDocumentsQuery(TypedDict):
    """
    Query parameters of `knowledge_bases.list_documents`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListPhoneNumbersQuery(TypedDict):
    """
    Query parameters of `phone_numbers.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListPrivacyRequestsQuery(TypedDict):
    """
    Query parameters of `privacy_requests.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class ListSmsConversationsQuery(TypedDict):
    """
    Query parameters of `sms.list_conversations`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    assigned_to: NotRequired[str | None]
    """
    Id of the member who has the conversations; an addition.
    """
    resolved: NotRequired[bool | None]
    """
    Whether the conversations are resolved; an addition.
    """
    waiting: NotRequired[bool | None]
    """
    Whether the contact waits for a person; an addition.
    """


class ListSmsMessagesQuery(TypedDict):
    """
    Query parameters of `sms.list_messages`.
    """

    limit: NotRequired[int]
    """
    Maximum number of messages on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """


class GetUsageHistoryQuery(TypedDict):
    """
    Query parameters of `usage.get_history`.
    """

    months: NotRequired[int]
    """
    Number of months, with the current one.
    """


class ListWebhookDeliveriesQuery(TypedDict):
    """
    Query parameters of `webhook_deliveries.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    status: NotRequired[str | None]
    """
    `pending`, `delivered`, or `failed`
    """
    target_kind: NotRequired[str | None]
    """
    `endpoint`, `agent`, or `integration`
    """


class ListWebhookEndpointDeliveriesQuery(TypedDict):
    """
    Query parameters of `webhook_endpoints.list_deliveries`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    status: NotRequired[str | None]
    """
    `pending`, `delivered`, or `failed`
    """


class RotateWebhookSecretQuery(TypedDict):
    """
    Query parameters of `webhook_endpoints.rotate_webhook_secret`.
    """

    grace: NotRequired[bool]
    """
    Whether the previous secret also signs for 24 hours.
    """


class ListWidgetsQuery(TypedDict):
    """
    Query parameters of `widgets.list`.
    """

    limit: NotRequired[int]
    """
    Maximum number of items on the page.
    """
    offset: NotRequired[int]
    """
    Number of newer items to skip.
    """
    agent_id: NotRequired[str | None]
    """
    Id of the agent.
    """


class Action(TypedDict):
    """
    An action and its parameters.
    """

    type: str
    """
    A built-in action or one of a plugin.
    """
    params: NotRequired[Mapping[str, Any]]
    """
    Parameters of the action; texts in them are templates over the event.
    """


class CalendarCreate(TypedDict):
    """
    A calendar to connect.
    """

    provider: str
    """
    `local`, the built-in calendar, or a provider of a plugin, such as `caldav`.
    """
    name: str
    """
    Name for people.
    """
    settings: NotRequired[Mapping[str, Any]]
    """
    What the provider needs to reach the account. Secrets are never returned.
    """


class CalendarUpdate(TypedDict):
    """
    A partial update of a calendar.
    """

    name: NotRequired[str]
    """
    Name for people.
    """
    settings: NotRequired[Mapping[str, Any]]
    """
    Changed settings; null removes one, and those that are not named stay.
    """


class CallCreate(TypedDict):
    """
    A call to place.
    """

    agent_id: str
    """
    Id of the agent that makes the call.
    """
    to_number: str
    """
    E.164 number to call.
    """
    from_number_id: str
    """
    One of the organization's numbers: the caller id.
    """
    metadata: NotRequired[Mapping[str, Any]]
    """
    Values for `{{name}}` in the prompt and the greeting; events carry it too.
    """


class CampaignCreate(TypedDict):
    """
    A new campaign. It is a draft until it is started.
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
    scheduled_at: NotRequired[str | None]
    """
    When a started campaign begins to dial; null or past: at once.
    """
    max_concurrent: NotRequired[int]
    """
    Maximum of concurrent calls, within the organization's limit.
    """
    retry: NotRequired[Retry | None]
    """
    Retries of contacts that were not reached; null: none. An addition.
    """
    voicemail_policy: NotRequired[VoicemailPolicy | None]
    """
    What happens when voicemail answers; null: what the agent says. An addition.
    """
    contacts: Sequence[ContactToCall]
    """
    Contacts to call, at most 100 000.
    """


class Condition(TypedDict):
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
    value: NotRequired[Any]
    """
    A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.
    """


class DeclaredTool(TypedDict):
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
    parameters: NotRequired[Mapping[str, Any]]
    """
    JSON schema of the arguments, of type object.
    """
    time_limit_seconds: NotRequired[float]
    """
    Seconds after which the request counts as failed, and the model is told so.
    """
    keypad_entries: NotRequired[Sequence[KeypadArgument]]
    """
    Arguments that the caller enters on the keypad before the tool is called, in this order.
    """
    needs: NotRequired[Sequence[NeededVariable]]
    """
    Variables that must be known before the tool is called; the request has all of them.
    """


class DisclosureSettings(TypedDict):
    """
    Notice and consent at the beginning of calls.  The rule of a call is that of `countries` for the other party's
    number, else that of `presets`, else the own `ai_notice` and `consent`. If several presets apply, the stricter
    counts.
    """

    ai_notice: NotRequired[bool]
    """
    Say that an AI is speaking.
    """
    consent: NotRequired[Literal["none", "notice", "ask"]]
    """
    `none`: the call is recorded. `notice`: say so; who stays on the line consents. `ask`: record only after a
    yes, by voice or key.
    """
    presets: NotRequired[Sequence[str]]
    """
    Rules of jurisdictions, by name; `us` includes the states. Not legal advice.
    """
    countries: NotRequired[Mapping[str, DisclosureRule]]
    """
    Rules by the country of the other party's number, or its region in the US and Canada.
    """
    without_consent: NotRequired[Literal["continue", "end_call"]]
    """
    What happens to the call after a no.
    """
    texts: NotRequired[SpokenTexts]
    """
    Sentences in the place of the standard ones.
    """


class HandoffCondition(TypedDict):
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
    value: NotRequired[Any]
    """
    A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.
    """
    least_origin: NotRequired[Literal["words", "keypad", "carrier", "crm", "metadata", "tool"] | None]
    """
    For `variables.`: the least trusted origin that counts, of `words`, `keypad`, `carrier`, `crm`, `metadata`,
    and `tool`; null: any.
    """


class Schedule(TypedDict):
    """
    Opening hours, and the action for calls outside them.
    """

    timezone: NotRequired[str]
    """
    IANA time zone of the hours, such as `Europe/Berlin`.
    """
    slots: NotRequired[Sequence[Slot]]
    """
    Opening hours; closed at all other times.
    """
    holidays: NotRequired[Sequence[str]]
    """
    Local dates, `YYYY-MM-DD`, on which no hours begin.
    """
    enabled: NotRequired[bool]
    """
    False: always open.
    """
    outside_action: NotRequired[Literal["forward", "voicemail", "hangup", "webhook"]]
    """
    What happens to calls while closed; `forward` and `webhook` use the number's `forward_number` and
    `forward_webhook_url`.
    """


class SimulationCreate(TypedDict):
    """
    A caller to simulate, and the assertions.
    """

    name: str
    """
    Name for people.
    """
    mode: NotRequired[Literal["text", "audio"]]
    """
    `audio` calls one of the agent's numbers over the loopback carrier.
    """
    persona: NotRequired[str]
    """
    Personality and manner of the caller.
    """
    goal: NotRequired[str]
    """
    Goal of the caller.
    """
    lines: NotRequired[Sequence[str]]
    """
    The caller's lines, in order. Without lines, the model plays the caller by persona and goal.
    """
    target: NotRequired[Literal["published", "draft"]]
    """
    `draft` tests the agent's draft as it is saved; mode `text` only.
    """
    max_turns: NotRequired[int]
    """
    Maximum number of the caller's turns.
    """
    assertions: Sequence[Said | NeverSaid | ToolCalled | Ended | LatencyUnder | Judged]
    """
    What has to hold for the simulation to pass.
    """


class SpecialDay(TypedDict):
    """
    A day whose hours are not those of its weekday.
    """

    date: str
    """
    Local date, `YYYY-MM-DD`.
    """
    hours: Sequence[SpecialHours]
    """
    Hours that begin on the day; empty: closed.
    """


class AutomationCreate(TypedDict):
    """
    A new automation.
    """

    description: NotRequired[str | None]
    """
    Free text for people.
    """
    trigger_filters: NotRequired[Mapping[str, Any]]
    """
    Path and required value of fields; an event that does not match records no run.
    """
    conditions: NotRequired[Sequence[Condition]]
    """
    All conditions must hold.
    """
    enabled: NotRequired[bool]
    """
    False: events start no runs.
    """
    name: str
    """
    Name for people.
    """
    trigger_type: Literal[
        "call.started",
        "call.ringing",
        "call.completed",
        "call.failed",
        "call.takeover",
        "call.handed_off",
        "call.transcript.ready",
        "sms.received",
        "sms.sent",
        "simulation.completed",
        "appointment.booked",
        "appointment.moved",
        "appointment.canceled",
        "appointment.reminder",
        "calendar.disconnected",
    ]
    """
    Name of the event that starts a run.
    """
    actions: Sequence[Action]
    """
    Run in order; each waits for the one before.
    """


class AutomationUpdate(TypedDict):
    """
    A partial update of an automation. Runs that have started continue unchanged.
    """

    description: NotRequired[str | None]
    """
    Free text for people.
    """
    trigger_filters: NotRequired[Mapping[str, Any]]
    """
    Path and required value of fields; an event that does not match records no run.
    """
    conditions: NotRequired[Sequence[Condition]]
    """
    All conditions must hold.
    """
    enabled: NotRequired[bool]
    """
    False: events start no runs.
    """
    name: NotRequired[str]
    """
    Name for people.
    """
    trigger_type: NotRequired[
        Literal[
            "call.started",
            "call.ringing",
            "call.completed",
            "call.failed",
            "call.takeover",
            "call.handed_off",
            "call.transcript.ready",
            "sms.received",
            "sms.sent",
            "simulation.completed",
            "appointment.booked",
            "appointment.moved",
            "appointment.canceled",
            "appointment.reminder",
            "calendar.disconnected",
        ]
    ]
    """
    Name of the event that starts a run.
    """
    actions: NotRequired[Sequence[Action]]
    """
    Run in order; each waits for the one before.
    """


class BookingHours(TypedDict):
    """
    Hours in which appointments are offered.
    """

    timezone: NotRequired[str]
    """
    IANA time zone of the hours, such as `Europe/Berlin`.
    """
    slots: NotRequired[Sequence[Slot]]
    """
    Opening hours; closed at all other times.
    """
    holidays: NotRequired[Sequence[str]]
    """
    Local dates, `YYYY-MM-DD`, on which no hours begin.
    """
    special_days: NotRequired[Sequence[SpecialDay]]
    """
    Days with other hours. A day of `holidays` stays closed.
    """


class Handoff(TypedDict):
    """
    Another agent that may get the conversation.
    """

    agent_id: str
    """
    Id of the agent that gets the conversation.
    """
    description: NotRequired[str]
    """
    Tells the model when to hand over; empty: only `conditions` do.
    """
    conditions: NotRequired[Sequence[HandoffCondition]]
    """
    Facts that hand over without the model, as soon as all of them hold.
    """
    mode: NotRequired[Literal["replace", "call_and_return"]]
    """
    `replace`: the other agent keeps the conversation. `call_and_return`: it does its part and comes back with a
    result.
    """
    context: NotRequired[Literal["everything", "last_turns", "summary", "nothing"]]
    """
    Share of the conversation that the other agent gets, as the caller has heard it, and that this one gets back
    in mode `call_and_return`. `summary` is written by this agent's model while it still speaks.
    """
    last_turns: NotRequired[int]
    """
    Number of utterances of both sides with `last_turns`.
    """
    greeting: NotRequired[Literal["continue", "own", "none"]]
    """
    First words of the other agent. `continue`: it goes on, knowing that the caller has been greeted. `own`: its
    `greeting_message`. `none`: it waits for the caller.
    """


class PhoneNumberUpdate(TypedDict):
    """
    A partial update of a phone number; null clears a value.
    """

    friendly_name: NotRequired[str]
    """
    Name for people.
    """
    inbound_agent_id: NotRequired[str | None]
    """
    Id of the agent that answers calls and text messages; null: nobody.
    """
    schedule: NotRequired[Schedule | None]
    """
    Opening hours for calls; null: always open.
    """
    sms_schedule: NotRequired[Schedule | None]
    """
    Hours in which the agent answers text messages; null: always.
    """
    forward_number: NotRequired[str | None]
    """
    E.164 number to which the schedule forwards calls, or `client:` and the name of a client, which is an
    addition.
    """
    forward_webhook_url: NotRequired[str | None]
    """
    Address that the schedule asks what to do with a call.
    """


class AgentChanges(TypedDict):
    """
    The fields that a draft changes.
    """

    system_prompt: NotRequired[str]
    """
    The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`.
    """
    llm_provider: NotRequired[str | None]
    """
    One of the organization's providers; defaults to the first one.
    """
    llm_model: NotRequired[str | None]
    """
    Name of the provider's model; null: the provider's default.
    """
    llm_temperature: NotRequired[float]
    """
    Randomness of the model's words, from 0 (the same answers) to 2.
    """
    tts_provider: NotRequired[str | None]
    """
    Provider of the voice, one of the organization's; defaults to the first one.
    """
    tts_voice_id: NotRequired[str | None]
    """
    Id of the voice at the provider; null: the provider's default.
    """
    tts_model: NotRequired[str | None]
    """
    Name of the voice provider's model; null: the provider's default.
    """
    voice_speed: NotRequired[float]
    """
    Speed of the voice as a multiple of the normal one; not every provider can change it.
    """
    pronunciations: NotRequired[Mapping[str, str]]
    """
    Pronunciation of words, in any letter case; an addition.
    """
    stt_provider: NotRequired[str | None]
    """
    Provider that transcribes, one of the organization's; defaults to the first one.
    """
    stt_model: NotRequired[str | None]
    """
    Name of the transcribing provider's model; null: the provider's default.
    """
    stt_language: NotRequired[str]
    """
    BCP 47 tag; `mul` if callers switch between languages.
    """
    greeting_message: NotRequired[str]
    """
    The agent's first words; empty: the agent waits for the caller.
    """
    end_call_silence_seconds: NotRequired[int]
    """
    Seconds without speech of either party after which the call ends.
    """
    max_call_duration_seconds: NotRequired[int]
    """
    Seconds after which the call ends, whatever happens in it.
    """
    allow_interruptions: NotRequired[bool]
    """
    False: the agent finishes what it says, and then answers what the caller said meanwhile.
    """
    interruption_min_words: NotRequired[int]
    """
    Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "mhm" and
    "okay" never do.
    """
    vad_confidence: NotRequired[float]
    """
    Least probability, from 0 to 1, at which audio counts as speech.
    """
    vad_start_secs: NotRequired[float]
    """
    Seconds of speech after which the caller counts as speaking, from 0 to 1.
    """
    vad_min_volume: NotRequired[float]
    """
    Least volume, from 0 to 1, at which audio counts as speech.
    """
    webhook_url: NotRequired[str | None]
    """
    Receives the events of this agent's calls, signed.
    """
    knowledge_base_ids: NotRequired[Sequence[str]]
    """
    Knowledge bases that the agent searches, in calls and text messages; an addition.
    """
    appointment_type_ids: NotRequired[Sequence[str]]
    """
    Appointment types that the agent books, moves, and cancels; an addition.
    """
    tools: NotRequired[Sequence[DeclaredTool]]
    """
    Functions that the model may call; an addition.
    """
    disabled_tools: NotRequired[Sequence[str]]
    """
    Names of tools that the agent does not have, such as `transfer_call`; an addition.
    """
    allowed_numbers: NotRequired[Sequence[str]]
    """
    Phone numbers to which the model may transfer calls and send text messages, and clients (`client:<name>`) to
    which it may transfer calls, besides those in `system_prompt`; an addition.
    """
    any_number: NotRequired[bool]
    """
    The model may transfer calls and send text messages to any number that the organization may call, also to one
    that a caller asks for; an addition.
    """
    queue_wait_seconds: NotRequired[int | None]
    """
    Longest wait of a caller for a person; null: the agent has no `ask_for_person` and `note_callback`. An
    addition.
    """
    queue_fallback: NotRequired[Literal["agent", "callback"]]
    """
    What happens if no person answers in time. `agent`: the agent says so and goes on. `callback`: a callback is
    noted, too. An addition.
    """
    handoffs: NotRequired[Sequence[Handoff]]
    """
    Other agents to which this one hands conversations over, each once; an addition.
    """
    variables: NotRequired[Sequence[AgentVariable]]
    """
    Values that the agent learns in a conversation, besides `metadata`; an addition.
    """
    claims: NotRequired[Sequence[Claim]]
    """
    Statements that the agent makes only if they are true, each once; an addition.
    """
    banned_phrases: NotRequired[Sequence[str]]
    """
    Phrases that the agent does not say, in any letter case; an addition.
    """
    banned_topics: NotRequired[Sequence[BannedTopic]]
    """
    Subjects that the agent does not talk about; an addition.
    """
    guardrails: NotRequired[Sequence[Guardrail]]
    """
    Words of the other side that the agent does not simply answer; an addition.
    """
    check_model: NotRequired[str | None]
    """
    Model of `llm_provider` that judges the caller's words for `guardrails`, and sentences of the agent that leave
    doubt; null: `llm_model`. An addition.
    """
    extraction_schema: NotRequired[ExtractionSchema | None]
    """
    Schema of `extracted_data` of this agent's calls; null: the analysis decides. An addition.
    """
    redaction: NotRequired[Redaction | None]
    """
    Private data to redact; null: the default of the organization's tenant file. An addition.
    """
    disclosure: NotRequired[DisclosureSettings | None]
    """
    Notice of AI and recording, and consent, at the beginning of calls. The organization's tenant file may demand
    more, and never less. An addition.
    """
    turn_detection: NotRequired[TurnDetection]
    """
    Rules by which a caller who pauses has finished; an addition.
    """
    voicemail_policy: NotRequired[VoicemailPolicy]
    """
    What happens when voicemail answers an outbound call; an addition.
    """
    name: NotRequired[str]
    """
    Name for people.
    """
    timezone: NotRequired[str]
    """
    IANA time zone.
    """


class AgentCreate(TypedDict):
    """
    A new agent.
    """

    system_prompt: NotRequired[str]
    """
    The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`.
    """
    llm_provider: NotRequired[str | None]
    """
    One of the organization's providers; defaults to the first one.
    """
    llm_model: NotRequired[str | None]
    """
    Name of the provider's model; null: the provider's default.
    """
    llm_temperature: NotRequired[float]
    """
    Randomness of the model's words, from 0 (the same answers) to 2.
    """
    tts_provider: NotRequired[str | None]
    """
    Provider of the voice, one of the organization's; defaults to the first one.
    """
    tts_voice_id: NotRequired[str | None]
    """
    Id of the voice at the provider; null: the provider's default.
    """
    tts_model: NotRequired[str | None]
    """
    Name of the voice provider's model; null: the provider's default.
    """
    voice_speed: NotRequired[float]
    """
    Speed of the voice as a multiple of the normal one; not every provider can change it.
    """
    pronunciations: NotRequired[Mapping[str, str]]
    """
    Pronunciation of words, in any letter case; an addition.
    """
    stt_provider: NotRequired[str | None]
    """
    Provider that transcribes, one of the organization's; defaults to the first one.
    """
    stt_model: NotRequired[str | None]
    """
    Name of the transcribing provider's model; null: the provider's default.
    """
    stt_language: NotRequired[str]
    """
    BCP 47 tag; `mul` if callers switch between languages.
    """
    greeting_message: NotRequired[str]
    """
    The agent's first words; empty: the agent waits for the caller.
    """
    end_call_silence_seconds: NotRequired[int]
    """
    Seconds without speech of either party after which the call ends.
    """
    max_call_duration_seconds: NotRequired[int]
    """
    Seconds after which the call ends, whatever happens in it.
    """
    allow_interruptions: NotRequired[bool]
    """
    False: the agent finishes what it says, and then answers what the caller said meanwhile.
    """
    interruption_min_words: NotRequired[int]
    """
    Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "mhm" and
    "okay" never do.
    """
    vad_confidence: NotRequired[float]
    """
    Least probability, from 0 to 1, at which audio counts as speech.
    """
    vad_start_secs: NotRequired[float]
    """
    Seconds of speech after which the caller counts as speaking, from 0 to 1.
    """
    vad_min_volume: NotRequired[float]
    """
    Least volume, from 0 to 1, at which audio counts as speech.
    """
    webhook_url: NotRequired[str | None]
    """
    Receives the events of this agent's calls, signed.
    """
    knowledge_base_ids: NotRequired[Sequence[str]]
    """
    Knowledge bases that the agent searches, in calls and text messages; an addition.
    """
    appointment_type_ids: NotRequired[Sequence[str]]
    """
    Appointment types that the agent books, moves, and cancels; an addition.
    """
    tools: NotRequired[Sequence[DeclaredTool]]
    """
    Functions that the model may call; an addition.
    """
    disabled_tools: NotRequired[Sequence[str]]
    """
    Names of tools that the agent does not have, such as `transfer_call`; an addition.
    """
    allowed_numbers: NotRequired[Sequence[str]]
    """
    Phone numbers to which the model may transfer calls and send text messages, and clients (`client:<name>`) to
    which it may transfer calls, besides those in `system_prompt`; an addition.
    """
    any_number: NotRequired[bool]
    """
    The model may transfer calls and send text messages to any number that the organization may call, also to one
    that a caller asks for; an addition.
    """
    queue_wait_seconds: NotRequired[int | None]
    """
    Longest wait of a caller for a person; null: the agent has no `ask_for_person` and `note_callback`. An
    addition.
    """
    queue_fallback: NotRequired[Literal["agent", "callback"]]
    """
    What happens if no person answers in time. `agent`: the agent says so and goes on. `callback`: a callback is
    noted, too. An addition.
    """
    handoffs: NotRequired[Sequence[Handoff]]
    """
    Other agents to which this one hands conversations over, each once; an addition.
    """
    variables: NotRequired[Sequence[AgentVariable]]
    """
    Values that the agent learns in a conversation, besides `metadata`; an addition.
    """
    claims: NotRequired[Sequence[Claim]]
    """
    Statements that the agent makes only if they are true, each once; an addition.
    """
    banned_phrases: NotRequired[Sequence[str]]
    """
    Phrases that the agent does not say, in any letter case; an addition.
    """
    banned_topics: NotRequired[Sequence[BannedTopic]]
    """
    Subjects that the agent does not talk about; an addition.
    """
    guardrails: NotRequired[Sequence[Guardrail]]
    """
    Words of the other side that the agent does not simply answer; an addition.
    """
    check_model: NotRequired[str | None]
    """
    Model of `llm_provider` that judges the caller's words for `guardrails`, and sentences of the agent that leave
    doubt; null: `llm_model`. An addition.
    """
    extraction_schema: NotRequired[ExtractionSchema | None]
    """
    Schema of `extracted_data` of this agent's calls; null: the analysis decides. An addition.
    """
    redaction: NotRequired[Redaction | None]
    """
    Private data to redact; null: the default of the organization's tenant file. An addition.
    """
    disclosure: NotRequired[DisclosureSettings | None]
    """
    Notice of AI and recording, and consent, at the beginning of calls. The organization's tenant file may demand
    more, and never less. An addition.
    """
    turn_detection: NotRequired[TurnDetection]
    """
    Rules by which a caller who pauses has finished; an addition.
    """
    voicemail_policy: NotRequired[VoicemailPolicy]
    """
    What happens when voicemail answers an outbound call; an addition.
    """
    required_simulations: NotRequired[Sequence[str]]
    """
    Names of the simulations that a draft must pass before it is published. With any, settings are changed by a
    draft only. An addition.
    """
    webhook_secret: NotRequired[str | None]
    """
    Signs requests to `webhook_url`; never returned.
    """
    name: str
    """
    Name for people.
    """


class AgentUpdate(TypedDict):
    """
    A partial update of an agent.
    """

    system_prompt: NotRequired[str]
    """
    The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`.
    """
    llm_provider: NotRequired[str | None]
    """
    One of the organization's providers; defaults to the first one.
    """
    llm_model: NotRequired[str | None]
    """
    Name of the provider's model; null: the provider's default.
    """
    llm_temperature: NotRequired[float]
    """
    Randomness of the model's words, from 0 (the same answers) to 2.
    """
    tts_provider: NotRequired[str | None]
    """
    Provider of the voice, one of the organization's; defaults to the first one.
    """
    tts_voice_id: NotRequired[str | None]
    """
    Id of the voice at the provider; null: the provider's default.
    """
    tts_model: NotRequired[str | None]
    """
    Name of the voice provider's model; null: the provider's default.
    """
    voice_speed: NotRequired[float]
    """
    Speed of the voice as a multiple of the normal one; not every provider can change it.
    """
    pronunciations: NotRequired[Mapping[str, str]]
    """
    Pronunciation of words, in any letter case; an addition.
    """
    stt_provider: NotRequired[str | None]
    """
    Provider that transcribes, one of the organization's; defaults to the first one.
    """
    stt_model: NotRequired[str | None]
    """
    Name of the transcribing provider's model; null: the provider's default.
    """
    stt_language: NotRequired[str]
    """
    BCP 47 tag; `mul` if callers switch between languages.
    """
    greeting_message: NotRequired[str]
    """
    The agent's first words; empty: the agent waits for the caller.
    """
    end_call_silence_seconds: NotRequired[int]
    """
    Seconds without speech of either party after which the call ends.
    """
    max_call_duration_seconds: NotRequired[int]
    """
    Seconds after which the call ends, whatever happens in it.
    """
    allow_interruptions: NotRequired[bool]
    """
    False: the agent finishes what it says, and then answers what the caller said meanwhile.
    """
    interruption_min_words: NotRequired[int]
    """
    Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "mhm" and
    "okay" never do.
    """
    vad_confidence: NotRequired[float]
    """
    Least probability, from 0 to 1, at which audio counts as speech.
    """
    vad_start_secs: NotRequired[float]
    """
    Seconds of speech after which the caller counts as speaking, from 0 to 1.
    """
    vad_min_volume: NotRequired[float]
    """
    Least volume, from 0 to 1, at which audio counts as speech.
    """
    webhook_url: NotRequired[str | None]
    """
    Receives the events of this agent's calls, signed.
    """
    knowledge_base_ids: NotRequired[Sequence[str]]
    """
    Knowledge bases that the agent searches, in calls and text messages; an addition.
    """
    appointment_type_ids: NotRequired[Sequence[str]]
    """
    Appointment types that the agent books, moves, and cancels; an addition.
    """
    tools: NotRequired[Sequence[DeclaredTool]]
    """
    Functions that the model may call; an addition.
    """
    disabled_tools: NotRequired[Sequence[str]]
    """
    Names of tools that the agent does not have, such as `transfer_call`; an addition.
    """
    allowed_numbers: NotRequired[Sequence[str]]
    """
    Phone numbers to which the model may transfer calls and send text messages, and clients (`client:<name>`) to
    which it may transfer calls, besides those in `system_prompt`; an addition.
    """
    any_number: NotRequired[bool]
    """
    The model may transfer calls and send text messages to any number that the organization may call, also to one
    that a caller asks for; an addition.
    """
    queue_wait_seconds: NotRequired[int | None]
    """
    Longest wait of a caller for a person; null: the agent has no `ask_for_person` and `note_callback`. An
    addition.
    """
    queue_fallback: NotRequired[Literal["agent", "callback"]]
    """
    What happens if no person answers in time. `agent`: the agent says so and goes on. `callback`: a callback is
    noted, too. An addition.
    """
    handoffs: NotRequired[Sequence[Handoff]]
    """
    Other agents to which this one hands conversations over, each once; an addition.
    """
    variables: NotRequired[Sequence[AgentVariable]]
    """
    Values that the agent learns in a conversation, besides `metadata`; an addition.
    """
    claims: NotRequired[Sequence[Claim]]
    """
    Statements that the agent makes only if they are true, each once; an addition.
    """
    banned_phrases: NotRequired[Sequence[str]]
    """
    Phrases that the agent does not say, in any letter case; an addition.
    """
    banned_topics: NotRequired[Sequence[BannedTopic]]
    """
    Subjects that the agent does not talk about; an addition.
    """
    guardrails: NotRequired[Sequence[Guardrail]]
    """
    Words of the other side that the agent does not simply answer; an addition.
    """
    check_model: NotRequired[str | None]
    """
    Model of `llm_provider` that judges the caller's words for `guardrails`, and sentences of the agent that leave
    doubt; null: `llm_model`. An addition.
    """
    extraction_schema: NotRequired[ExtractionSchema | None]
    """
    Schema of `extracted_data` of this agent's calls; null: the analysis decides. An addition.
    """
    redaction: NotRequired[Redaction | None]
    """
    Private data to redact; null: the default of the organization's tenant file. An addition.
    """
    disclosure: NotRequired[DisclosureSettings | None]
    """
    Notice of AI and recording, and consent, at the beginning of calls. The organization's tenant file may demand
    more, and never less. An addition.
    """
    turn_detection: NotRequired[TurnDetection]
    """
    Rules by which a caller who pauses has finished; an addition.
    """
    voicemail_policy: NotRequired[VoicemailPolicy]
    """
    What happens when voicemail answers an outbound call; an addition.
    """
    required_simulations: NotRequired[Sequence[str]]
    """
    Names of the simulations that a draft must pass before it is published. With any, settings are changed by a
    draft only. An addition.
    """
    webhook_secret: NotRequired[str | None]
    """
    Signs requests to `webhook_url`; never returned.
    """
    name: NotRequired[str]
    """
    Name for people.
    """
    status: NotRequired[Literal["active", "paused"]]
    """
    A `paused` agent takes and places no calls, and answers no text messages.
    """
    timezone: NotRequired[str]
    """
    IANA time zone; not returned.
    """


class AppointmentTypeCreate(TypedDict):
    """
    A new appointment type.
    """

    calendar_ids: Sequence[str]
    """
    Ids of the calendars that the appointments are booked in.
    """
    calendar_mode: NotRequired[Literal["any", "all"]]
    """
    `any`: in one calendar that is free. `all`: in all calendars, which must all be free.
    """
    duration_minutes: NotRequired[int]
    """
    Length of an appointment.
    """
    grid_minutes: NotRequired[int | None]
    """
    Distance of offered times, from the beginning of the hours; null: `duration_minutes`.
    """
    buffer_before_minutes: NotRequired[int]
    """
    Minutes that must be free before an appointment.
    """
    buffer_after_minutes: NotRequired[int]
    """
    Minutes that must be free after an appointment.
    """
    hours: BookingHours
    """
    Hours in which appointments are offered, in the form of a phone number's `schedule`.
    """
    lead_minutes: NotRequired[int]
    """
    Shortest time from the booking to the appointment.
    """
    horizon_days: NotRequired[int]
    """
    Days ahead for which appointments are offered.
    """
    daily_limit: NotRequired[int | None]
    """
    Most appointments of the type on one local day; null: no limit.
    """
    reminder_minutes: NotRequired[Sequence[int]]
    """
    Minutes before an appointment at which `appointment.reminder` is published.
    """
    fields: NotRequired[Sequence[AppointmentField]]
    """
    Questions that are asked when an appointment is booked.
    """
    check_fields: NotRequired[Sequence[str]]
    """
    Names of questions whose answers a person has to give who moves or cancels an appointment from another number;
    empty: an agent changes it for its own number only.
    """
    name: str
    """
    Name for people.
    """


class AppointmentTypeUpdate(TypedDict):
    """
    A partial update of an appointment type. Appointments that are booked stay as they are.
    """

    calendar_ids: NotRequired[Sequence[str]]
    """
    Ids of the calendars that the appointments are booked in.
    """
    calendar_mode: NotRequired[Literal["any", "all"]]
    """
    `any`: in one calendar that is free. `all`: in all calendars, which must all be free.
    """
    duration_minutes: NotRequired[int]
    """
    Length of an appointment.
    """
    grid_minutes: NotRequired[int | None]
    """
    Distance of offered times, from the beginning of the hours; null: `duration_minutes`.
    """
    buffer_before_minutes: NotRequired[int]
    """
    Minutes that must be free before an appointment.
    """
    buffer_after_minutes: NotRequired[int]
    """
    Minutes that must be free after an appointment.
    """
    hours: NotRequired[BookingHours]
    """
    Hours in which appointments are offered, in the form of a phone number's `schedule`.
    """
    lead_minutes: NotRequired[int]
    """
    Shortest time from the booking to the appointment.
    """
    horizon_days: NotRequired[int]
    """
    Days ahead for which appointments are offered.
    """
    daily_limit: NotRequired[int | None]
    """
    Most appointments of the type on one local day; null: no limit.
    """
    reminder_minutes: NotRequired[Sequence[int]]
    """
    Minutes before an appointment at which `appointment.reminder` is published.
    """
    fields: NotRequired[Sequence[AppointmentField]]
    """
    Questions that are asked when an appointment is booked.
    """
    check_fields: NotRequired[Sequence[str]]
    """
    Names of questions whose answers a person has to give who moves or cancels an appointment from another number;
    empty: an agent changes it for its own number only.
    """
    name: NotRequired[str]
    """
    Name for people.
    """


class DraftSave(TypedDict):
    """
    A draft to save, and the one that it replaces.
    """

    revision: str | None
    """
    Revision of the draft that you read; null if there was none. Another one is a 409.
    """
    changes: AgentChanges
    """
    Fields to change, all that the draft shall have.
    """
