"""Switchboard without accounts: a simulated carrier, eSpeak, PocketSphinx, a scripted model, and MiniLM embeddings.

Providers are imported when a hook is called, so that a process that only recognizes speech starts without the others.
"""

from typing import Any

from switchboard.plugin_sdk import (
    EmbeddingProvider,
    LLMProvider,
    SpeechToTextProvider,
    TelephonyProvider,
    TextToSpeechProvider,
    hookimpl,
)


@hookimpl
def telephony_providers() -> list[type[TelephonyProvider[Any]]]:
    from switchboard_offline.loopback import LoopbackTelephony

    return [LoopbackTelephony]


@hookimpl
def speech_to_text_providers() -> list[type[SpeechToTextProvider[Any]]]:
    from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText

    return [PocketsphinxSpeechToText]


@hookimpl
def text_to_speech_providers() -> list[type[TextToSpeechProvider[Any]]]:
    from switchboard_offline.espeak import EspeakTextToSpeech

    return [EspeakTextToSpeech]


@hookimpl
def llm_providers() -> list[type[LLMProvider[Any]]]:
    from switchboard_offline.scripted import ScriptedLLM

    return [ScriptedLLM]


@hookimpl
def embedding_providers() -> list[type[EmbeddingProvider[Any]]]:
    from switchboard_offline.minilm import MiniLMEmbedding

    return [MiniLMEmbedding]
