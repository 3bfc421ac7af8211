"""Labels for names of the API."""

from typing import Final

ENDED: Final = {
    "caller_hung_up": "The other party hung up",
    "agent_hung_up": "The agent hung up",
    "silence": "Nobody spoke for a while",
    "max_duration": "The maximum call duration was reached",
    "voicemail": "The agent left a voicemail message",
    "transferred": "The call was transferred",
    "taken_over": "A person took over the call",
    "no_consent": "The other party did not consent to the recording",
    "canceled": "The call was canceled before it was answered",
    "do_not_call": "The number is on the do-not-call list",
    "destination_not_allowed": "The number may not be called",
    "invalid_number": "The number does not exist",
    "insufficient_balance": "The balance was used up",
    "provider_failed": "A provider failed",
    "shutdown": "The server was stopped",
    "error": "Internal error",
}
"""Labels of the reasons for which a call ended."""

CONSENT_ANSWERS: Final = {
    "speech": "Said",
    "keypad": "Key pressed",
    "stayed": "Stayed on the line after the notice",
}
"""Labels of the ways in which consent to a recording is given or refused."""

CAPABILITIES: Final = {
    "telephony": "Carrier",
    "llm": "Model",
    "speech_to_text": "Speech to text",
    "text_to_speech": "Text to speech",
    "embedding": "Embedding",
    "turn_detector": "Turn detection",
    "analysis": "Analysis",
}
"""Labels of the capabilities that serve a call."""

COST_PARTS: Final = {
    "carriage": "Phone line",
    "speech_to_text": "Speech to text",
    "text_to_speech": "Text to speech",
    "model": "Language model",
    "dropped_model": "Unused answers",
    "embedding": "Embedding",
}
"""Labels of the parts of a call's cost."""

OUTSIDE: Final = {
    "hangup": "Reject the call",
    "voicemail": "Take a voicemail message",
    "forward": "Forward it to another number",
    "webhook": "Ask your webhook",
}
"""Labels of the actions for calls outside opening hours."""

COUNTRIES: Final = {
    "US": "United States",
    "CA": "Canada",
    "GB": "United Kingdom",
    "AU": "Australia",
    "AT": "Austria",
    "BE": "Belgium",
    "BR": "Brazil",
    "BG": "Bulgaria",
    "CL": "Chile",
    "CO": "Colombia",
    "HR": "Croatia",
    "CY": "Cyprus",
    "CZ": "Czechia",
    "DK": "Denmark",
    "EE": "Estonia",
    "FI": "Finland",
    "FR": "France",
    "DE": "Germany",
    "GR": "Greece",
    "HK": "Hong Kong",
    "HU": "Hungary",
    "IN": "India",
    "ID": "Indonesia",
    "IE": "Ireland",
    "IL": "Israel",
    "IT": "Italy",
    "JP": "Japan",
    "LV": "Latvia",
    "LT": "Lithuania",
    "LU": "Luxembourg",
    "MY": "Malaysia",
    "MT": "Malta",
    "MX": "Mexico",
    "NL": "Netherlands",
    "NZ": "New Zealand",
    "NO": "Norway",
    "PE": "Peru",
    "PH": "Philippines",
    "PL": "Poland",
    "PT": "Portugal",
    "PR": "Puerto Rico",
    "RO": "Romania",
    "SG": "Singapore",
    "SK": "Slovakia",
    "SI": "Slovenia",
    "ZA": "South Africa",
    "KR": "South Korea",
    "ES": "Spain",
    "SE": "Sweden",
    "CH": "Switzerland",
    "TW": "Taiwan",
    "TH": "Thailand",
    "TR": "Turkey",
}
"""The countries in which carriers sell phone numbers, by ISO 3166 code."""
