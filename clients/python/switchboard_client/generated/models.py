"""Objects of responses and events. Generated: run `make clients` instead of editing."""

from __future__ import annotations

from datetime import date as date_aliased
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from switchboard_client.model import Model


class AgentVersionOut(Model):
    """
    An agent as of one update.
    """

    version: int
    settings: dict[str, Any]
    created_at: AwareDatetime


class AttemptOut(Model):
    """
    One request of a delivery. Of the receiver's response only the status is stored.
    """

    number: int
    started_at: AwareDatetime
    duration_ms: int
    status_code: int | None
    error: str | None
    """
    Null for a success.
    """


class AttemptsOut(Model):
    """
    A delivery's attempts, in order.
    """

    items: list[AttemptOut]


class BalanceOut(Model):
    """
    An organization's balance.
    """

    balance: float
    currency: Literal["USD"] | None = None
    billing_mode: Literal["prepaid", "postpaid"]
    updated_at: AwareDatetime


class BrowserTokenOut(Model):
    """
    Credentials for calls from a browser or an app.
    """

    token: str
    """
    Token for the carrier's client SDK.
    """
    provider: str
    platform: Literal["web", "ios", "android"]
    identity: str
    """
    The caller's identity at the carrier.
    """
    expires_at: AwareDatetime
    connection: dict[str, str]
    """
    Further settings of the SDK.
    """


class CallerIdOut(Model):
    """
    A phone number that can be called from.
    """

    id: str
    phone_number: str
    friendly_name: str


class CallerIds(Model):
    """
    The phone numbers that can be called from.
    """

    items: list[CallerIdOut]


class CampaignContactOut(Model):
    """
    A contact of a campaign. `outcome` is that of the last call, also while a retry is pending.
    """

    id: str
    campaign_id: str
    phone_number: str
    name: str | None
    status: Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"]
    outcome: (
        Literal["answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled"]
        | None
    )
    call_id: str | None
    error: str | None
    attempts: int
    """
    Number of times the contact was dialed; an addition.
    """
    called_at: AwareDatetime | None
    created_at: AwareDatetime


class Capabilities(Model):
    """
    Capabilities of a phone number.
    """

    voice: bool
    sms: bool
    mms: bool


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
    notice: str
    """
    Sentences that were spoken.
    """
    asked_at: AwareDatetime
    asked_ms: int
    answer: bool | None
    """
    Null if only a notice was due, or the other party hung up before.
    """
    by: Literal["speech", "keypad", "stayed"] | None
    heard: str | None
    """
    Words or key of the answer; deleted with the transcript.
    """
    answered_at: AwareDatetime | None
    answered_ms: int | None
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
    phone_number: str
    name: str | None
    email: str | None
    company: str | None
    notes: str | None
    tags: str | None
    address: str | None
    role: str | None
    is_favorite: bool
    created_at: AwareDatetime
    updated_at: AwareDatetime


class DayOut(Model):
    """
    Figures of one day.
    """

    date: date_aliased
    total: int
    completed: int
    failed: int
    inbound: int
    outbound: int
    minutes: float
    cost: float


class DaysOut(Model):
    """
    Every day of the period, oldest first, including days without calls.
    """

    items: list[DayOut]


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
    phone_number: str
    source: Literal["api", "text", "call"]
    """
    Channel of the request: the API, a text message, or a call.
    """
    note: str
    created_at: AwareDatetime


class DocumentOut(Model):
    """
    A document of a knowledge base.
    """

    id: str
    knowledge_base_id: str
    filename: str
    content_type: str
    file_size: int
    """
    Size in bytes; of a PDF or DOCX, the size of the file.
    """
    chunk_count: int
    """
    Number of passages.
    """
    status: Literal["processing", "ready", "failed"]
    error_message: str | None
    created_at: AwareDatetime


class Ended(Model):
    """
    This side ends the conversation.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["ended_by"]
    by: Literal["agent", "caller", "transfer", "limit"]


class EndpointCreated(Model):
    """
    A webhook endpoint with its signing secret, which is shown only once.
    """

    id: str
    url: str
    description: str | None
    events: list[str]
    """
    Empty: every event.
    """
    enabled: bool
    has_secret: bool
    consecutive_failures: int
    """
    Deliveries that ended `failed` since the last success; the 20th disables the endpoint.
    """
    previous_secret_expires_at: AwareDatetime | None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    secret: str


class EndpointOut(Model):
    """
    A webhook endpoint.
    """

    id: str
    url: str
    description: str | None
    events: list[str]
    """
    Empty: every event.
    """
    enabled: bool
    has_secret: bool
    consecutive_failures: int
    """
    Deliveries that ended `failed` since the last success; the 20th disables the endpoint.
    """
    previous_secret_expires_at: AwareDatetime | None
    created_at: AwareDatetime
    updated_at: AwareDatetime


class EventOut(Model):
    """
    An event that endpoints can subscribe to.
    """

    name: str
    description: str


class EventsOut(Model):
    """
    Every event.
    """

    items: list[EventOut]


class ExportLinkOut(Model):
    """
    Link to the file of an export that needs no credential until it expires.
    """

    url: str
    expires_at: AwareDatetime


class ExtractedField(Model):
    """
    A value to extract from a call.
    """

    type: Literal["string", "number", "integer", "boolean"]
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
    properties: dict[str, ExtractedField]
    required: list[str] | None = None


class IntegrationOut(Model):
    """
    The integration without its secrets.
    """

    has_partner_api_key: bool
    webhook_url: str | None
    has_webhook_secret: bool
    updated_at: AwareDatetime


class Judged(Model):
    """
    The agent's model reads the transcript and judges whether the statement holds.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["judge"]
    question: str


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
    name: str
    description: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class LatencyUnder(Model):
    """
    Each answer of the agent starts within the limit. Mode `audio` only.
    """

    name: str | None = None
    """
    Name of the criterion; defaults to a description of the assertion.
    """
    type: Literal["latency_under_ms"]
    milliseconds: int
    """
    From the caller's last sound to the agent's first.
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
    text: str
    """
    Consecutive words in any letter case; `*` matches anything.
    """


class PassageOut(Model):
    """
    A matching passage. Scores of different searches cannot be compared.
    """

    document_id: str
    knowledge_base_id: str
    filename: str
    chunk_index: int
    """
    Position of the passage in the document, from 0.
    """
    content: str
    score: float


class PassagesOut(Model):
    """
    Matching passages, best first.
    """

    items: list[PassageOut]


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
    to: date_aliased
    days: int


class PhoneNumberOut(Model):
    """
    A phone number.
    """

    id: str
    phone_number: str
    friendly_name: str
    inbound_agent_id: str | None
    status: Literal["provisioning", "active", "pending_release", "released", "failed"]
    schedule: dict[str, Any] | None
    sms_schedule: dict[str, Any] | None
    forward_number: str | None
    forward_webhook_url: str | None
    sms_active: bool
    created_at: AwareDatetime
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
    kind: Literal["export", "erase"]
    status: Literal["queued", "running", "completed", "failed"]
    phone_number: str | None
    """
    Null once the number is erased.
    """
    report: PrivacyReport
    error_message: str | None
    created_at: AwareDatetime
    completed_at: AwareDatetime | None
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
    provider: str
    plugin: str
    error: str
    count: int


class RecordingLinkOut(Model):
    """
    Link to a call's recording that needs no credential until it expires.
    """

    url: str
    expires_at: AwareDatetime
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


class RotatedSecret(Model):
    """
    The new secret, which is shown only once.
    """

    secret: str
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
    text: str
    """
    Consecutive words in any letter case; `*` matches anything.
    """


class Sentiment(Model):
    """
    Number of calls by the caller's sentiment.
    """

    positive: int
    neutral: int
    negative: int
    unknown: int


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


class SmsConversationOut(Model):
    """
    All messages between one of the organization's phone numbers and one contact.
    """

    id: str
    phone_number_id: str
    contact_number: str
    status: Literal["open", "closed"]
    """
    `closed`: the contact has sent STOP.
    """
    last_message_at: AwareDatetime
    created_at: AwareDatetime


class SmsMessageOut(Model):
    """
    A text message.
    """

    id: str
    conversation_id: str
    direction: Literal["inbound", "outbound"]
    from_number: str
    to_number: str
    body: str
    status: Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]
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
    media_urls: list[str]
    """
    Addresses of media at the carrier; an addition.
    """
    error_message: str | None
    """
    Why it failed or was not delivered; an addition.
    """
    created_at: AwareDatetime


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


class SpokenOut(Model):
    """
    An utterance or a tool call (`content` is JSON: `tool`, `result`, and in mode `text` also `arguments`).
    """

    role: Literal["user", "agent", "tool", "system"]
    content: str


class SpokenTexts(Model):
    """
    Sentences of the organization; null: the standard one in the agent's language.
    """

    ai_notice: str | None = None
    recording_notice: str | None = None
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
    tool: str
    arguments: dict[str, Any] | None = None
    """
    Required arguments; others are allowed.
    """


class TranscriptEntryOut(Model):
    """
    Utterance, tool call, or event of a call. Milliseconds count from the start of the call's audio.
    """

    role: Literal["user", "agent", "tool", "system"]
    content: str
    timestamp_ms: int
    by_person: bool
    """
    True if a user who had taken the call over said it in the agent's place; an addition.
    """
    backchannel: bool
    """
    True if the caller said it while the agent spoke, and it did not stop the agent; an addition.
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
    endpoint_ms: int | None
    transcript_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    first_frame_ms: int | None


class UsageOut(Model):
    """
    A month's totals, in the organization's time zone.
    """

    period: str
    call_minutes: float
    calls: int
    sms_sent: int
    sms_received: int
    cost: float


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
    started_at: AwareDatetime | None
    completed_at: AwareDatetime | None


class AutomationRunOut(Model):
    """
    A run of an automation for one event.
    """

    id: str
    automation_id: str
    trigger_event: str
    status: Literal["running", "completed", "failed", "skipped"]
    """
    `running`, then `completed` or `failed`; `skipped` if a condition did not hold or the loop guard stopped it.
    """
    started_at: AwareDatetime
    completed_at: AwareDatetime | None
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


class AvailableNumberOut(Model):
    """
    A phone number that can be bought.
    """

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


class AvailableNumbers(Model):
    """
    Search results.
    """

    items: list[AvailableNumberOut]


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


class CallCompletedDelivery(Model):
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


class CallFailedDelivery(Model):
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


class CallOut(Model):
    """
    A call.
    """

    id: str
    agent_id: str | None
    direction: Literal["inbound", "outbound"]
    status: Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
    from_number: str
    to_number: str
    duration_seconds: int
    cost_total: float
    recording_url: str | None
    """
    Null until there is a recording. Fetch it with the same credential.
    """
    call_summary: str | None
    call_successful: bool | None
    user_sentiment: Literal["positive", "neutral", "negative", "unknown"]
    extracted_data: dict[str, Any]
    error_message: str | None
    ended_reason: str | None
    """
    Reason why the call ended: `caller_hung_up`, `agent_hung_up`, `silence`, `max_duration`, `voicemail`,
    `transferred`, `taken_over`, `canceled`, `no_consent`, `do_not_call`, `destination_not_allowed`,
    `invalid_number`, `insufficient_balance`, `provider_failed`, `shutdown`, `error`. Later versions may add
    reasons. An addition.
    """
    transferred_to: str | None
    """
    Number to which the call was transferred or forwarded; an addition.
    """
    metadata: dict[str, Any]
    """
    Metadata with which the call was created; an addition.
    """
    costs: dict[str, float]
    """
    `cost_total` by part; an addition.
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
    started_at: AwareDatetime | None
    ended_at: AwareDatetime | None
    created_at: AwareDatetime


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


class CallRingingDelivery(Model):
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


class CallStartedDelivery(Model):
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


class CallTakeoverDelivery(Model):
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


class CallTranscriptReadyDelivery(Model):
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
    name: str
    agent_id: str
    phone_number_id: str
    status: Literal["draft", "scheduled", "running", "paused", "completed", "canceled", "failed"]
    status_reason: str | None
    """
    Why the campaign failed or was paused automatically; an addition.
    """
    scheduled_at: AwareDatetime | None
    max_concurrent: int
    retry: Retry | None
    """
    An addition.
    """
    voicemail_policy: VoicemailPolicy | None
    """
    An addition.
    """
    total_contacts: int
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
    updated_at: AwareDatetime


class Condition(Model):
    """
    A condition for the actions; if it does not hold, the run is `skipped`.
    """

    field: str
    operator: Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]
    value: Any | None = None
    """
    A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.
    """


class DeclaredTool(Model):
    """
    A function of the organization that the agent's model may call, in calls and text messages.
    """

    name: str
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
    keypad_entries: list[KeypadArgument] | None = None
    """
    Arguments that the caller enters on the keypad before the tool is called, in this order.
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
    event_type: str
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    next_attempt_at: AwareDatetime | None
    last_status_code: int | None
    last_error: str | None
    replayed_from_id: str | None
    payload: dict[str, Any]
    """
    The body as sent: `event`, `data`, `timestamp`; `unreadable` if its key was destroyed.
    """
    created_at: AwareDatetime
    delivered_at: AwareDatetime | None


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


class OverviewOut(Model):
    """
    Figures of the period's calls. An average or rate without calls is null.
    """

    period: Period
    total_calls: int
    completed_calls: int
    failed_calls: int
    """
    Calls that ended with another status than `completed`.
    """
    inbound_calls: int
    outbound_calls: int
    total_minutes: float
    average_duration_seconds: float | None
    """
    Average over completed calls.
    """
    success_rate: float | None
    """
    Share of successful calls among those with a success judgment, 0 to 1.
    """
    total_cost: float
    average_cost: float | None
    sentiment: Sentiment


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
    agent_id: str
    name: str
    mode: Literal["text", "audio"]
    persona: str
    goal: str
    lines: list[str]
    max_turns: int
    assertions: list[Said | NeverSaid | ToolCalled | Ended | LatencyUnder | Judged]
    status: Literal["queued", "running", "passed", "failed", "error"]
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
    transcript: list[SpokenOut]
    ended_by: Literal["agent", "caller", "transfer", "limit"] | None
    call_id: str | None
    """
    Id of the call in mode `audio`.
    """
    error_message: str | None
    """
    Reason for status `error`, which says nothing about the agent.
    """
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    completed_at: AwareDatetime | None


class UsageHistoryOut(Model):
    """
    Months, newest first.
    """

    items: list[UsageOut]


class AgentOut(Model):
    """
    An agent.
    """

    id: str
    name: str
    agent_type: Literal["voice"]
    status: Literal["active", "paused"]
    version: int
    """
    Incremented by each update that changes something; an addition.
    """
    llm_provider: str
    llm_model: str | None
    llm_temperature: float
    system_prompt: str
    tts_provider: str
    tts_voice_id: str | None
    tts_model: str | None
    voice_speed: float
    pronunciations: dict[str, str]
    stt_provider: str
    stt_model: str | None
    stt_language: str
    greeting_message: str
    end_call_silence_seconds: int
    max_call_duration_seconds: int
    allow_interruptions: bool
    interruption_min_words: int
    vad_confidence: float
    vad_start_secs: float
    vad_min_volume: float
    webhook_url: str | None
    knowledge_base_ids: list[str]
    """
    An addition.
    """
    tools: list[DeclaredTool]
    """
    An addition.
    """
    disabled_tools: list[str]
    """
    An addition.
    """
    allowed_numbers: list[str]
    """
    An addition.
    """
    any_number: bool
    """
    An addition.
    """
    extraction_schema: ExtractionSchema | None
    """
    An addition.
    """
    redaction: Redaction | None
    """
    An addition.
    """
    disclosure: DisclosureSettings | None
    """
    An addition.
    """
    turn_detection: TurnDetection
    """
    An addition.
    """
    voicemail_policy: VoicemailPolicy
    """
    An addition.
    """
    created_at: AwareDatetime
    updated_at: AwareDatetime


class AutomationOut(Model):
    """
    An automation.
    """

    id: str
    name: str
    description: str | None
    enabled: bool
    trigger_type: str
    trigger_filters: dict[str, Any]
    conditions: list[Condition]
    actions: list[Action]
    run_count: int
    """
    Runs recorded so far, including skipped ones.
    """
    last_run_at: AwareDatetime | None
    created_at: AwareDatetime
