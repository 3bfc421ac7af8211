"""Labels for names of the API, each in the language of the page where a template shows it."""

from collections.abc import Mapping
from typing import Final
from unicodedata import normalize

from switchboard.foundation.languages import LazyText, get_display_locale, pgettext

ENDED: Final = {
    "caller_hung_up": LazyText("The other party hung up"),
    "agent_hung_up": LazyText("The agent hung up"),
    "silence": LazyText("Nobody spoke for a while"),
    "max_duration": LazyText("The maximum call duration was reached"),
    "voicemail": LazyText("The agent left a voicemail message"),
    "transferred": LazyText("The call was transferred"),
    "taken_over": LazyText("A person took over the call"),
    "no_consent": LazyText("The other party did not consent to the recording"),
    "canceled": LazyText("The call was canceled before it was answered"),
    "do_not_call": LazyText("The number is on the do-not-call list"),
    "destination_not_allowed": LazyText("The number may not be called"),
    "invalid_number": LazyText("The number does not exist"),
    "insufficient_balance": LazyText("The balance was used up"),
    "provider_failed": LazyText("A provider failed"),
    "shutdown": LazyText("The server was stopped"),
    "error": LazyText("Internal error"),
}
"""Labels of the reasons for which a call ended."""

ORIGINS: Final = {
    "words": LazyText("as the caller said"),
    "keypad": LazyText("from the keypad"),
    "tool": LazyText("from a tool"),
}
"""Origins of variables that are learned in a call."""
CLAIMS: Final = {
    "booked": LazyText("An appointment was booked"),
    "rescheduled": LazyText("An appointment was moved"),
    "canceled": LazyText("An appointment was canceled"),
    "transferred": LazyText("The caller is being transferred"),
    "message_sent": LazyText("A message was sent"),
    "opted_out": LazyText("The number was removed from the list"),
    "refunded": LazyText("Money was refunded"),
    "price": LazyText("A price"),
    "opening_hours": LazyText("An opening hour"),
}
"""Labels of the built-in claims."""
INTERVENTIONS: Final = {
    "held_back": LazyText("not said"),
    "ignore": LazyText("the agent went on"),
    "answer": LazyText("answered with its text"),
    "person": LazyText("a person was asked for"),
    "end": LazyText("the call was ended"),
}
"""Labels of what was done about words of an agent or a caller."""
CONSENT_ANSWERS: Final = {
    "speech": LazyText("Said"),
    "keypad": LazyText("Key pressed"),
    "stayed": LazyText("Stayed on the line after the notice"),
}
"""Labels of the ways in which consent to a recording is given or refused."""

CAPABILITIES: Final = {
    "telephony": LazyText("Carrier"),
    "llm": LazyText("Model"),
    "speech_to_text": LazyText("Speech to text"),
    "text_to_speech": LazyText("Text to speech"),
    "embedding": LazyText("Embedding"),
    "turn_detector": LazyText("Turn detection"),
    "analysis": LazyText("Analysis"),
}
"""Labels of the capabilities that serve a call."""

COST_PARTS: Final = {
    "carriage": LazyText("Phone line"),
    "speech_to_text": LazyText("Speech to text"),
    "text_to_speech": LazyText("Text to speech"),
    "model": LazyText("Language model"),
    "dropped_model": LazyText("Unused answers"),
    "embedding": LazyText("Embedding"),
}
"""Labels of the parts of a call's cost."""

OUTSIDE: Final = {
    "hangup": LazyText("Reject the call"),
    "voicemail": LazyText("Take a voicemail message"),
    "forward": LazyText("Forward it to another number"),
    "webhook": LazyText("Ask your webhook"),
}
"""Labels of the actions for calls outside opening hours."""

# fmt: off
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "call": ("queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"),
    "direction of a call": ("inbound", "outbound"),
    "sentiment": ("positive", "neutral", "negative", "unknown"),
    "text message": ("queued", "sending", "sent", "delivered", "undelivered", "failed", "received"),
    "campaign": ("draft", "scheduled", "running", "paused", "completed", "canceled", "failed"),
    "person of a campaign": ("pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"),
    "outcome": (
        "answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled",
    ),
    "run of an automation": ("running", "completed", "failed", "skipped"),
    "action of a run": ("pending", "running", "completed", "failed", "skipped"),
    "webhook delivery": ("pending", "delivered", "failed"),
    "document": ("processing", "ready", "failed"),
    "simulation": ("queued", "running", "passed", "failed", "error", "missing"),
    "end of a simulation": ("agent", "caller", "transfer", "limit"),
    "criterion": (
        "passed", "failed", "said", "never_said", "tool_called", "ended_by", "latency_under_ms", "judge",
    ),
    "agent": ("active", "paused"),
    "API key": ("active", "expired", "revoked"),
    "data request": ("queued", "running", "completed", "failed"),
    "support session": ("active",),
    "webhook endpoint": ("enabled", "disabled"),
    "role": ("viewer", "agent", "builder", "owner"),
    "kind of phone number": ("local", "mobile", "toll_free", "national"),
    "ledger entry": ("call", "analysis", "text", "number", "embedding", "simulation", "credit"),
    "price": (
        "call_minute", "transcription_minute", "speech_1000_characters", "model_1000_input_tokens",
        "model_1000_output_tokens", "embedding_1000_tokens", "text_segment", "number_month",
    ),
    "capability": (
        "telephony", "speech_to_text", "text_to_speech", "llm", "embedding", "vector_store", "turn_detector",
        "calendar", "automation_action", "agent_tool", "event_watcher", "private_data_detector",
    ),
    "calendar": ("connected", "disconnected"),
    "appointment": ("pending", "booked", "canceled", "failed"),
    "order of organizations": ("name", "newest", "cost", "calls", "live_calls", "balance"),
    "process": ("serve", "worker", "running"),
    "queue": (
        "Calls to dial", "Calls without progress", "Analyses of calls", "Recordings to find",
        "Text messages without progress", "Answers to text messages", "Files of text messages", "Webhook deliveries",
        "Automation runs", "Campaigns", "Events for plugins", "Triggers of automations", "Documents",
        "Privacy requests", "Simulations",
    ),
}
"""Values of the API that pages show in words, by what they describe. That noun is the context of their messages: words
such as "completed" agree with it in other languages.
"""

HUMAN_AGENT: Final = "human agent"
"""The role `agent`: an agent is the assistant."""
COUNTRIES: Final = (
    "US", "CA", "GB", "AU", "AT", "BE", "BR", "BG", "CL", "CO", "HR", "CY", "CZ", "DK", "EE", "FI", "FR", "DE",
    "GR", "HK", "HU", "IN", "ID", "IE", "IL", "IT", "JP", "LV", "LT", "LU", "MY", "MT", "MX", "NL", "NZ", "NO",
    "PE", "PH", "PL", "PT", "PR", "RO", "SG", "SK", "SI", "ZA", "KR", "ES", "SE", "CH", "TW", "TH", "TR",
)
# fmt: on
"""The countries in which carriers sell phone numbers, by ISO 3166 code."""


def list_countries() -> dict[str, str]:
    """Return the names of `COUNTRIES` by code, in the order of the current language's alphabet."""
    names = get_display_locale().territories

    def strip_accents(code: str) -> str:
        return normalize("NFD", names[code]).encode("ascii", "ignore").decode().casefold()

    return {code: names[code] for code in sorted(COUNTRIES, key=strip_accents)}


def describe_value(value: str, noun: str) -> str:
    """Return a value of the API, such as `in_progress`, in words of the current language.

    `noun` is a key of `VALUES`. A value that is not there, such as one of a plugin, stays as it is.
    """
    words = name_value(value, noun)
    return pgettext(noun, words) if value in VALUES[noun] else words


def name_value(value: str, noun: str) -> str:
    """Return the English words of a value."""
    return HUMAN_AGENT if (noun, value) == ("role", "agent") else value.replace("_", " ")
