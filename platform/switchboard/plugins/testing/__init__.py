"""Contract suites: one pytest class for each capability, which a plugin's own tests subclass. See docs/plugins/testing.md."""

# ruff: noqa: E402 - pytest rewrites assertions, so that a failing rule shows its values, only in what is imported after it was told of it
import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from switchboard.plugins.testing.actions import AutomationActionContract
from switchboard.plugins.testing.contract import Contract, ProviderContract
from switchboard.plugins.testing.embeddings import EmbeddingContract
from switchboard.plugins.testing.llm import LLMContract
from switchboard.plugins.testing.speech_to_text import SpeechToTextContract
from switchboard.plugins.testing.telephony import MEDIA_URL, CarrierSamples, TelephonyContract
from switchboard.plugins.testing.text_to_speech import TextToSpeechContract
from switchboard.plugins.testing.vector_stores import VectorStoreContract

__all__ = [
    "MEDIA_URL",
    "AutomationActionContract",
    "CarrierSamples",
    "Contract",
    "EmbeddingContract",
    "LLMContract",
    "ProviderContract",
    "SpeechToTextContract",
    "TelephonyContract",
    "TextToSpeechContract",
    "VectorStoreContract",
]
