"""What Twilio is told to do with a call, in its markup (https://www.twilio.com/docs/voice/twiml)."""

from typing import Final

from switchboard.plugin_sdk import CarrierReply
from switchboard.plugin_sdk.languages import find_nearest_language
from twilio.twiml import TwiML
from twilio.twiml.messaging_response import MessagingResponse
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
"""What `<Say>` speaks, as Twilio's SDKs list it, the first of each language first; in any other it may say nothing at all."""


def reply_with(markup: TwiML) -> CarrierReply:
    """Markup as the answer to a callback."""
    return CarrierReply(str(markup).encode(), CONTENT_TYPE)


def reply_without_message() -> CarrierReply:
    """The answer to a text that Twilio brings: no text goes back by it."""
    return reply_with(MessagingResponse())


def connect_stream(
    media_url: str, token: str, stream_callback: str, recording_callback: str | None = None
) -> VoiceResponse:
    """Connect the call's audio to our socket. When we close that, or it cannot be opened, nothing follows, so the call ends."""
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


def dial_number(to_number: str, caller_id: str) -> VoiceResponse:
    """Connect the call to another number. The caller hears it ring; when the other side hangs up, the call ends."""
    response = VoiceResponse()
    response.dial(caller_id=caller_id, answer_on_bridge=True, timeout=FORWARD_RING_SECONDS).number(to_number)
    return response


def say_and_redirect(text: str, language: str, then: str) -> VoiceResponse:
    """Say something, and ask us at this address what follows. In a language that Twilio does not speak it is left to say it as it can."""
    response = VoiceResponse()
    response.say(text, language=find_nearest_language(language, LANGUAGES))
    response.redirect(then, method="POST")
    return response


def join_conference(room: str) -> VoiceResponse:
    """Connect the call to the other one in a room of two, who hear each other alone; the room closes behind whoever leaves it first."""
    response = VoiceResponse()
    response.dial().conference(room, beep=False, start_conference_on_enter=True, end_conference_on_exit=True)
    return response


def reject_call(reason: str) -> VoiceResponse:
    """Do not answer: `rejected` or `busy`."""
    response = VoiceResponse()
    response.reject(reason=reason)
    return response
