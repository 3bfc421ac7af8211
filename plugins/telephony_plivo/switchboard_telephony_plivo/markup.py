"""Instructions for calls in Plivo XML (https://www.plivo.com/docs/voice/xml/overview)."""

from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from switchboard.plugin_sdk import ACCEPT_PROMPTS, ACCEPT_SECONDS, CallbackReply
from switchboard.plugin_sdk.languages import find_nearest_language

from switchboard_telephony_plivo.codec import ENCODING, SAMPLE_RATE

FORWARD_RING_SECONDS: Final = 30
LANGUAGES: Final = (
    "en-US", "en-GB", "en-AU", "es-US", "es-ES", "de-DE", "fr-FR", "fr-CA", "pt-BR", "pt-PT", "da-DK", "it-IT",
    "nl-NL", "pl-PL", "ru-RU", "sv-SE",
)  # fmt: skip
"""Languages of `<Speak>`, the default variant of each language first. Any other makes the whole document invalid
(https://www.plivo.com/docs/voice/xml/audio-output).
"""
MALE_ONLY: Final = ("pt-PT",)
"""Languages without Plivo's default voice."""


def respond_with(*elements: Element) -> CallbackReply:
    """Return Plivo XML as the response to a callback."""
    response = Element("Response")
    response.extend(elements)
    return CallbackReply(tostring(response, encoding="UTF-8", xml_declaration=True), "application/xml; charset=utf-8")


def build_stream(media_url: str, token: str, stream_callback: str) -> Element:
    """Connect the call's audio to the platform's socket.

    When the socket is closed or cannot be opened, no instruction follows, so the call ends.
    """
    stream = Element(
        "Stream",
        bidirectional="true",
        keepCallAlive="true",
        audioTrack="inbound",
        contentType=f"{ENCODING};rate={SAMPLE_RATE}",
        statusCallbackUrl=stream_callback,
        statusCallbackMethod="POST",
        extraHeaders=f"token={token}",
    )
    stream.text = media_url
    return stream


def build_dial(to_number: str, caller_id: str) -> Element:
    """Connect the call to another number.

    The caller hears ringing; the call ends when the other side hangs up.
    """
    dial = Element("Dial", callerId=caller_id, timeout=str(FORWARD_RING_SECONDS))
    SubElement(dial, "Number").text = to_number
    return dial


def build_questions(text: str, language: str, then: str) -> list[Element]:
    """Speak a text until a key is pressed, and request the next instructions from `then`; without a key, hang up."""
    digits = Element(
        "GetDigits", action=then, method="POST", numDigits="1", finishOnKey="none", timeout=str(ACCEPT_SECONDS)
    )
    speak, spoken = SubElement(digits, "Speak"), find_nearest_language(language, LANGUAGES)
    speak.text = text
    if spoken is not None:
        speak.set("language", spoken)
    if spoken in MALE_ONLY:
        speak.set("voice", "MAN")
    return [digits] * ACCEPT_PROMPTS + [build_hangup()]


def build_hangup(**attributes: str) -> Element:
    """End the call, or reject it with a `reason`, `rejected` or `busy`."""
    return Element("Hangup", attributes)


def join_multiparty_call(name: str) -> Element:
    """Connect the call to the other one in a silent multiparty call of two, which ends when either party leaves."""
    member = Element(
        "MultiPartyCall",
        role="Agent",
        maxParticipants="2",
        stayAlone="true",
        startMpcOnEnter="true",
        endMpcOnExit="true",
        enterSound="none",
        exitSound="none",
    )
    member.text = name
    return member
