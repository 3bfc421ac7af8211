"""Contract suites: one pytest class per capability, which a plugin's own tests subclass.

See docs/plugins/testing.md.
"""

# ruff: noqa: E402 - pytest rewrites assertions only in modules that are imported after their registration
import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from switchboard.plugin_sdk.testing.actions import AutomationActionContract
from switchboard.plugin_sdk.testing.calendars import CalendarContract, OAuthCalendarContract
from switchboard.plugin_sdk.testing.contract import Contract, ExtensionContract, ProviderContract
from switchboard.plugin_sdk.testing.embeddings import EmbeddingContract
from switchboard.plugin_sdk.testing.event_watchers import EventWatcherContract
from switchboard.plugin_sdk.testing.llm import LLMContract
from switchboard.plugin_sdk.testing.private_data import PrivateDataDetectorContract, RemotePrivateDataDetectorContract
from switchboard.plugin_sdk.testing.speech_to_text import SpeechToTextContract
from switchboard.plugin_sdk.testing.telephony import MEDIA_URL, CarrierSamples, MovedFiles, TelephonyContract
from switchboard.plugin_sdk.testing.text_to_speech import TextToSpeechContract
from switchboard.plugin_sdk.testing.tools import AgentToolContract
from switchboard.plugin_sdk.testing.turn_detectors import TurnDetectorContract
from switchboard.plugin_sdk.testing.vector_stores import VectorStoreContract

__all__ = [
    "MEDIA_URL",
    "AgentToolContract",
    "AutomationActionContract",
    "CalendarContract",
    "CarrierSamples",
    "Contract",
    "EmbeddingContract",
    "EventWatcherContract",
    "ExtensionContract",
    "LLMContract",
    "MovedFiles",
    "OAuthCalendarContract",
    "PrivateDataDetectorContract",
    "ProviderContract",
    "RemotePrivateDataDetectorContract",
    "SpeechToTextContract",
    "TelephonyContract",
    "TextToSpeechContract",
    "TurnDetectorContract",
    "VectorStoreContract",
]
