"""Switchboard without accounts: a simulated carrier, eSpeak, PocketSphinx, a scripted model, and MiniLM embeddings.

Providers are imported when a hook is called, so that a process that only recognizes speech starts without the others.
"""

from typing import TYPE_CHECKING

from switchboard.plugin_sdk import hookimpl

if TYPE_CHECKING:
    from switchboard_offline.espeak import EspeakTextToSpeech
    from switchboard_offline.loopback import LoopbackTelephony
    from switchboard_offline.minilm import MiniLMEmbedding
    from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText
    from switchboard_offline.scripted import ScriptedLLM


@hookimpl
def telephony_providers() -> "list[type[LoopbackTelephony]]":
    from switchboard_offline.loopback import LoopbackTelephony

    return [LoopbackTelephony]


@hookimpl
def speech_to_text_providers() -> "list[type[PocketsphinxSpeechToText]]":
    from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText

    return [PocketsphinxSpeechToText]


@hookimpl
def text_to_speech_providers() -> "list[type[EspeakTextToSpeech]]":
    from switchboard_offline.espeak import EspeakTextToSpeech

    return [EspeakTextToSpeech]


@hookimpl
def llm_providers() -> "list[type[ScriptedLLM]]":
    from switchboard_offline.scripted import ScriptedLLM

    return [ScriptedLLM]


@hookimpl
def embedding_providers() -> "list[type[MiniLMEmbedding]]":
    from switchboard_offline.minilm import MiniLMEmbedding

    return [MiniLMEmbedding]
