"""Texts of the widget: messages of the dashboard's catalogs with a context of their own."""

from typing import Final

from quart import request

from switchboard.foundation.languages import DEFAULT_LANGUAGE, LANGUAGES, pgettext, use_language
from switchboard.resources.widgets.models import Widget

CONTEXT: Final = "widget"
LABELS: Final = {
    "open": "Chat with us",
    "close": "Close",
    "conversation": "Conversation",
    "message": "Message",
    "placeholder": "Write a message …",
    "send": "Send",
    "call": "Talk",
    "hang_up": "Hang up",
    "mute": "Mute",
    "microphone": "Your browser asks for access to the microphone.",
    "no_microphone": "The microphone cannot be used. Allow it for this page, or write instead.",
    "ringing": "Connecting …",
    "connected": "Connected. Just speak.",
    "ended": "The call has ended.",
    "typing": "The agent is writing …",
    "notice": "You are talking to an AI agent. The conversation is stored.",
    "you": "You",
    "limit": "There are too many conversations at the moment. Try again in a minute.",
    "spent": "The agent is not available any more today. Try again tomorrow.",
    "failed": "The agent cannot answer at the moment. Try again.",
    "demo": "Try this agent: press the button at the bottom, then write or talk.",
}
"""English texts by their names in templates and scripts."""


def translate_labels(language: str) -> dict[str, str]:
    """Return the texts in a language."""
    with use_language(language):
        return {name: pgettext(CONTEXT, text) for name, text in LABELS.items()}


def choose_language(widget: Widget, wanted: str = "") -> str:
    """Return the language of the widget's texts: the page's choice, the widget's, or the first of the browser."""
    of_browser = request.accept_languages.best_match(list(LANGUAGES), DEFAULT_LANGUAGE)
    return next(language for language in (wanted, widget.language, of_browser) if language in LANGUAGES)
