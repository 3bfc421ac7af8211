"""Instructions for calls in TwiML (https://www.twilio.com/docs/voice/twiml)."""

from typing import Final

from switchboard.plugin_sdk import ACCEPT_PROMPTS, ACCEPT_SECONDS, CallbackReply, find_client_identity
from switchboard.plugin_sdk.languages import find_nearest_language
from twilio.twiml import TwiML
from twilio.twiml.voice_response import VoiceResponse

from switchboard_telephony_twilio.codec import TOKEN

CONTENT_TYPE = "text/xml; charset=utf-8"
FORWARD_RING_SECONDS = 30
LANGUAGES: Final = (
    "en-US", "en-GB", "en-AU", "en-CA", "en-IE", "en-IN", "en-NZ", "en-ZA", "en-GB-WLS", "es-US", "es-ES", "es-MX",
    "de-DE", "de-AT", "fr-FR", "fr-CA", "fr-BE", "pt-BR", "pt-PT", "nl-NL", "nl-BE", "zh-CN", "zh-HK", "zh-TW",
    "cmn-CN", "cmn-TW", "yue-HK", "ar-XA", "ar-AE", "arb", "af-ZA", "am-ET", "bg-BG", "bn-IN", "ca-ES", "cs-CZ",
    "cy-GB", "da-DK", "el-GR", "fi-FI", "fil-PH", "gu-IN", "he-IL", "hi-IN", "hu-HU", "id-ID", "is-IS", "it-IT",
    "ja-JP", "kn-IN", "ko-KR", "lv-LV", "ml-IN", "mr-IN", "ms-MY", "nb-NO", "pa-IN", "pl-PL", "ro-RO", "ru-RU", "sk-SK",
    "sr-RS", "sv-SE", "ta-IN", "te-IN", "th-TH", "tr-TR", "uk-UA", "vi-VN",
)  # fmt: skip
"""Languages of `<Say>`, as listed by Twilio's SDKs, the default variant of each language first. In any other, Twilio
may say nothing.
"""


def reply_with(markup: TwiML) -> CallbackReply:
    """Return TwiML as the response to a callback."""
    return CallbackReply(str(markup).encode(), CONTENT_TYPE)


def connect_stream(
    media_url: str, token: str, stream_callback: str, recording_callback: str | None = None
) -> VoiceResponse:
    """Connect the call's audio to the platform's socket.

    When the socket is closed or cannot be opened, no instruction follows, so the call ends.
    """
    response = VoiceResponse()
    if recording_callback is not None:
        response.start().recording(
            recording_status_callback=recording_callback,
            recording_status_callback_event="completed",
            channels="dual",
            trim="do-not-trim",
        )
    response.connect().stream(url=media_url, status_callback=stream_callback).parameter(name=TOKEN, value=token)
    return response


def dial_destination(to_number: str, caller_id: str) -> VoiceResponse:
    """Connect the call to another number, or ring a client (https://www.twilio.com/docs/voice/twiml/client).

    The caller hears ringing; the call ends when the other side hangs up.
    """
    response = VoiceResponse()
    dial = response.dial(caller_id=caller_id, answer_on_bridge=True, timeout=FORWARD_RING_SECONDS)
    identity = find_client_identity(to_number)
    if identity is None:
        dial.number(to_number)
    else:
        dial.client().identity(identity)
    return response


def ask_for_key(text: str, language: str, then: str) -> VoiceResponse:
    """Speak a text until a key is pressed, and request the next instructions from `then`; without a key, hang up.

    For a language that Twilio does not speak, no language is sent
    (https://www.twilio.com/docs/voice/twiml/gather).
    """
    response = VoiceResponse()
    for _ in range(ACCEPT_PROMPTS):
        gather = response.gather(
            input="dtmf", num_digits=1, finish_on_key="", timeout=ACCEPT_SECONDS, action=then, method="POST"
        )
        gather.say(text, language=find_nearest_language(language, LANGUAGES))
    response.hangup()
    return response


def end_call() -> VoiceResponse:
    """End the call."""
    response = VoiceResponse()
    response.hangup()
    return response


def join_conference(name: str) -> VoiceResponse:
    """Connect the call to the other one in a silent two-party conference, which ends when either party leaves."""
    response = VoiceResponse()
    response.dial().conference(name, beep=False, start_conference_on_enter=True, end_conference_on_exit=True)
    return response


def reject_call(reason: str) -> VoiceResponse:
    """Reject the call, with reason `rejected` or `busy`."""
    response = VoiceResponse()
    response.reject(reason=reason)
    return response
