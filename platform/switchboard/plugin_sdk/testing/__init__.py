"""Contract suites: one pytest class per capability, which a plugin's own tests subclass.

See docs/plugins/testing.md.
"""

# ruff: noqa: E402, I001 - pytest rewrites assertions only in modules that are imported after their registration;
# "A as A" exports a name (PEP 484, section "Stub files")
import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from switchboard.plugin_sdk.testing.actions import AutomationActionContract as AutomationActionContract
from switchboard.plugin_sdk.testing.calendars import (
    CalendarContract as CalendarContract,
    OAuthCalendarContract as OAuthCalendarContract,
)
from switchboard.plugin_sdk.testing.contract import (
    Contract as Contract,
    ExtensionContract as ExtensionContract,
    ProviderContract as ProviderContract,
)
from switchboard.plugin_sdk.testing.embeddings import EmbeddingContract as EmbeddingContract
from switchboard.plugin_sdk.testing.event_watchers import EventWatcherContract as EventWatcherContract
from switchboard.plugin_sdk.testing.llm import LLMContract as LLMContract
from switchboard.plugin_sdk.testing.private_data import (
    PrivateDataDetectorContract as PrivateDataDetectorContract,
    RemotePrivateDataDetectorContract as RemotePrivateDataDetectorContract,
)
from switchboard.plugin_sdk.testing.speech_to_text import SpeechToTextContract as SpeechToTextContract
from switchboard.plugin_sdk.testing.telephony import (
    MEDIA_URL as MEDIA_URL,
    CarrierSamples as CarrierSamples,
    MovedFiles as MovedFiles,
    TelephonyContract as TelephonyContract,
)
from switchboard.plugin_sdk.testing.text_to_speech import TextToSpeechContract as TextToSpeechContract
from switchboard.plugin_sdk.testing.tools import AgentToolContract as AgentToolContract
from switchboard.plugin_sdk.testing.turn_detectors import TurnDetectorContract as TurnDetectorContract
from switchboard.plugin_sdk.testing.vector_stores import VectorStoreContract as VectorStoreContract
