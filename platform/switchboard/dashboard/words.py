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

CAPABILITIES: Final = {"telephony": "Carrier", "llm": "Model", "speech_to_text": "Speech to text", "text_to_speech": "Text to speech"}
"""What a provider does for a call."""
