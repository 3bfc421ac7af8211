"""Contract suites: one pytest class for each capability, which a plugin's own tests subclass. See docs/plugins/testing.md."""

from switchboard.plugins.testing.actions import AutomationActionContract
from switchboard.plugins.testing.contract import ProviderContract
from switchboard.plugins.testing.embeddings import EmbeddingContract
from switchboard.plugins.testing.llm import LLMContract
from switchboard.plugins.testing.speech_to_text import SpeechToTextContract
from switchboard.plugins.testing.telephony import CarrierSamples, TelephonyContract
from switchboard.plugins.testing.text_to_speech import TextToSpeechContract
from switchboard.plugins.testing.vector_stores import VectorStoreContract

__all__ = [
    "AutomationActionContract",
    "CarrierSamples",
    "EmbeddingContract",
    "LLMContract",
    "ProviderContract",
    "SpeechToTextContract",
    "TelephonyContract",
    "TextToSpeechContract",
    "VectorStoreContract",
]
