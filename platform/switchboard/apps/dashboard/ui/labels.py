"""What the dashboard calls things that the API names shortly."""

from typing import Final

ENDED: Final = {
    "caller_hung_up": "The other side hung up",
    "agent_hung_up": "The agent hung up",
    "silence": "Nobody said anything for a while",
    "max_duration": "It reached the longest time that the agent allows",
    "voicemail": "A message was left on voicemail",
    "transferred": "It was transferred",
    "taken_over": "A person had taken it over",
    "canceled": "It was canceled before anybody answered",
    "do_not_call": "The number is on the do-not-call list",
    "invalid_number": "There is no such number",
    "insufficient_balance": "The balance was used up",
    "provider_failed": "A provider failed",
    "shutdown": "The server was stopped",
    "error": "Something failed on our side",
}
"""Why a call ended."""

CAPABILITIES: Final = {
    "telephony": "Carrier",
    "llm": "Model",
    "speech_to_text": "Speech to text",
    "text_to_speech": "Text to speech",
    "embedding": "Embedding",
    "analysis": "Analysed by",
}
"""What a provider does for a call."""

OUTSIDE: Final = {
    "hangup": "Do not take the call",
    "voicemail": "Let them leave a message",
    "forward": "Forward it to another number",
    "webhook": "Ask your webhook",
}
"""What happens to a call outside opening hours."""

COUNTRIES: Final = {
    "US": "United States", "CA": "Canada", "GB": "United Kingdom", "AU": "Australia", "AT": "Austria", "BE": "Belgium", "BR": "Brazil",
    "BG": "Bulgaria", "CL": "Chile", "CO": "Colombia", "HR": "Croatia", "CY": "Cyprus", "CZ": "Czechia", "DK": "Denmark", "EE": "Estonia",
    "FI": "Finland", "FR": "France", "DE": "Germany", "GR": "Greece", "HK": "Hong Kong", "HU": "Hungary", "IN": "India", "ID": "Indonesia",
    "IE": "Ireland", "IL": "Israel", "IT": "Italy", "JP": "Japan", "LV": "Latvia", "LT": "Lithuania", "LU": "Luxembourg", "MY": "Malaysia",
    "MT": "Malta", "MX": "Mexico", "NL": "Netherlands", "NZ": "New Zealand", "NO": "Norway", "PE": "Peru", "PH": "Philippines", "PL": "Poland",
    "PT": "Portugal", "PR": "Puerto Rico", "RO": "Romania", "SG": "Singapore", "SK": "Slovakia", "SI": "Slovenia", "ZA": "South Africa",
    "KR": "South Korea", "ES": "Spain", "SE": "Sweden", "CH": "Switzerland", "TW": "Taiwan", "TH": "Thailand", "TR": "Turkey",
}  # fmt: skip
"""Where carriers sell numbers, by ISO 3166."""
