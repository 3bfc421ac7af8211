"""Names of languages at vendors: transcribers tell Cantonese from Mandarin, and clouds require a region."""

from collections.abc import Mapping
from typing import Final

from switchboard.plugin_sdk.languages import get_single_language

CANTONESE: Final = "yue"
CANTONESE_LOCALE: Final = "zh-HK"
OWN_NAMES: Final[Mapping[str, str]] = {"no": "nb", "tl": "fil"}
"""Names of base languages in locales of Azure
(https://learn.microsoft.com/azure/ai-services/speech-service/language-support).
"""
REGIONS: Final[Mapping[str, str]] = {
    "ar": "SA", "bg": "BG", "ca": "ES", "cs": "CZ", "da": "DK", "de": "DE", "el": "GR", "en": "US", "es": "ES",
    "et": "EE", "fi": "FI", "fr": "FR", "he": "IL", "hi": "IN", "hr": "HR", "hu": "HU", "id": "ID", "it": "IT",
    "ja": "JP", "ko": "KR", "lt": "LT", "lv": "LV", "ms": "MY", "nb": "NO", "nl": "NL", "pl": "PL", "pt": "BR",
    "ro": "RO", "ru": "RU", "sk": "SK", "sl": "SI", "sv": "SE", "ta": "IN", "th": "TH", "fil": "PH", "tr": "TR",
    "uk": "UA", "vi": "VN", "zh": "CN",
}  # fmt: skip
"""Region of a language that is named without one."""


def is_cantonese(language: str) -> bool:
    """Return whether a BCP 47 tag means Cantonese."""
    return language.partition("-")[0].lower() == CANTONESE


def get_transcribed_language(language: str) -> str | None:
    """Return the base language, `yue` for Cantonese, and None for multiple languages."""
    return CANTONESE if is_cantonese(language) else get_single_language(language)


def get_locale(language: str) -> str | None:
    """Return a language with a region, such as `de-DE` for `de`; None for multiple languages.

    A language without a known region stays as it is, and is the vendor's to refuse.
    """
    if is_cantonese(language):
        return CANTONESE_LOCALE
    base = get_single_language(language)
    if base is None:
        return None
    base = OWN_NAMES.get(base, base)
    region = language.partition("-")[2] or REGIONS.get(base)
    return f"{base}-{region}" if region else base
