"""Languages of transcribers, most of which tell Cantonese from Mandarin, unlike voices."""

from typing import Final

from switchboard.plugin_sdk.languages import get_single_language

CANTONESE: Final = "yue"


def is_cantonese(language: str) -> bool:
    """Return whether a BCP 47 tag means Cantonese."""
    return language.partition("-")[0].lower() == CANTONESE


def get_transcribed_language(language: str) -> str | None:
    """Return the base language, `yue` for Cantonese, and None for multiple languages."""
    return CANTONESE if is_cantonese(language) else get_single_language(language)
